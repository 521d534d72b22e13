"""What the check of the scene found, the gravest first."""

from html import escape

from PySide6.QtGui import QTextOption
from PySide6.QtWidgets import QTextBrowser, QWidget

from app.palette import Palette
from app.panels.panel import Panel
from app.theme import set_role
from engine.messages import Event, FindingSummary, SceneOpened, State

SEVERITIES = (
    ("error", "✖", "Errors", "bad"),
    ("warning", "▲", "Warnings", "changed"),
    ("ok", "✔", "In order", "good"),
)
SHOWN_OF_ONE_KIND = 100


class FindingsPanel(Panel):
    """Findings grouped by severity; their texts and file names can be selected and copied."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Scene check", parent)
        self._findings: tuple[FindingSummary, ...] | None = None
        self.view = QTextBrowser(self)
        self.view.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.view.setTabChangesFocus(True)
        self.view.setAccessibleName("Findings of the scene check")
        self.view.document().setDocumentMargin(0)
        set_role(self.view, "log")
        self.body.addWidget(self.view, 1)
        self._show()

    def handle(self, event: Event) -> None:
        """Show the findings of a scene."""
        if isinstance(event, SceneOpened):
            self._findings = event.findings
            self._show()

    def set_state(self, state: State) -> None:
        """Show nothing where no scene is open."""
        super().set_state(state)
        if state in (State.EMPTY, State.LOADING):
            self._findings = None
            self._show()

    def set_colors(self, colors: Palette) -> None:
        """Write anew in the colours of a theme."""
        super().set_colors(colors)
        self._show()

    def _show(self) -> None:
        if not self._findings:
            words = "No scene is open." if self._findings is None else "Nothing to report."
            self.view.setHtml(f'<p style="color:{self.colors.muted}">{words}</p>')
            return
        parts = []
        for severity, sign, heading, color in SEVERITIES:
            matching = [f for f in self._findings if f.severity == severity]
            if matching:
                parts.append(
                    f'<p style="color:{getattr(self.colors, color)}; margin-bottom:2px">'
                    f"<b>{sign}&nbsp; {heading} ({len(matching):,})</b></p>"
                )
                parts += [_paragraph(finding) for finding in matching[:SHOWN_OF_ONE_KIND]]
                rest = len(matching) - SHOWN_OF_ONE_KIND
                if rest > 0:
                    parts.append(f"<p>and {rest:,} more; “splatscope check” prints them all.</p>")
        self.view.setHtml("".join(parts))


def _paragraph(finding: FindingSummary) -> str:
    message = escape(finding.message)
    name = escape(finding.file)
    if name and name in message:
        message = message.replace(name, f"<b>{name}</b>", 1)
    elif name:
        message = f"<b>{name}</b>: {message}"
    return f'<p style="margin-top:2px; margin-bottom:6px">{message}</p>'

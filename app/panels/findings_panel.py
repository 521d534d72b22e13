"""What the check of the scene found, the gravest first, and many of one kind as one."""

from collections.abc import Sequence
from html import escape

from PySide6.QtCore import QUrl
from PySide6.QtGui import QTextOption
from PySide6.QtWidgets import QTextBrowser, QWidget

from app.palette import Palette
from app.panels.panel import Panel
from app.theme import set_role
from engine.dataset.findings import grouped
from engine.dataset.scene import Finding
from engine.messages import Event, SceneOpened, State

SEVERITIES = (
    ("error", "✖", "Errors", "bad"),
    ("warning", "▲", "Warnings", "changed"),
    ("ok", "✔", "In order", "good"),
)
SHOWN_OF_ONE_KIND = 100
NAMED_TOGETHER = 3  # `grouped` names so many; where there are no more, nothing need unfold


class FindingsPanel(Panel):
    """Findings by severity and code; their texts and file names can be selected and copied."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Scene check", parent)
        self._findings: tuple[Finding, ...] | None = None
        self.view = QTextBrowser(self)
        self.view.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.view.setTabChangesFocus(True)
        self.view.setAccessibleName("Findings of the scene check")
        self.view.document().setDocumentMargin(0)
        self.view.setOpenLinks(False)
        self.view.anchorClicked.connect(self._turn_group)
        self._unfolded: set[str] = set()  # codes
        set_role(self.view, "log")
        self.body.addWidget(self.view, 1)
        self._show()

    def handle(self, event: Event) -> None:
        """Show the findings of a scene."""
        if isinstance(event, SceneOpened):
            self._findings = event.findings
            self._unfolded.clear()
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

    def _turn_group(self, link: QUrl) -> None:
        """Fold a group or unfold it, and stay where the reader is."""
        self._unfolded ^= {link.toString()}
        bar = self.view.verticalScrollBar()
        place = bar.value()
        self._show()
        bar.setValue(place)

    def _show(self) -> None:
        if not self._findings:
            closed = "Checking …" if self.state is State.LOADING else "No scene is open."
            words = closed if self._findings is None else "Nothing to report."
            self.view.setHtml(f'<p style="color:{self.colors.muted}">{words}</p>')
            return
        parts = []
        for severity, sign, heading, color in SEVERITIES:
            matching = [f for f in self._findings if f.severity == severity]
            if matching:
                parts.append(
                    f'<p style="color:{getattr(self.colors, color)}; margin-bottom:2px">'
                    f"<b>{sign}&nbsp; {heading} ({len(grouped(matching)):,})</b></p>"
                )
                for code in dict.fromkeys(finding.code for finding in matching):
                    parts += self._group(code, [f for f in matching if f.code == code])
        self.view.setHtml("".join(parts))

    def _group(self, code: str, findings: Sequence[Finding]) -> list[str]:
        """The paragraphs of one code: together as one, with a link that unfolds them."""
        together = grouped(findings)
        if len(together) == len(findings):
            return [_paragraph(finding) for finding in findings]
        parts = [_paragraph(finding) for finding in together]
        if len(findings) <= NAMED_TOGETHER:
            return parts
        if code not in self._unfolded:
            return [*parts, self._link(code, f"▸ show all {len(findings):,}")]
        parts.append(self._link(code, "▾ show them together"))
        parts += [_paragraph(finding) for finding in findings[:SHOWN_OF_ONE_KIND]]
        hidden = len(findings) - SHOWN_OF_ONE_KIND
        if hidden > 0:
            parts.append(f"<p>and {hidden:,} more; “splatscope check” prints them all.</p>")
        return parts

    def _link(self, code: str, words: str) -> str:
        style = f"color:{self.colors.accent}; text-decoration:none"
        return f'<p style="margin-top:0px"><a href="{escape(code)}" style="{style}">{words}</a></p>'


def _paragraph(finding: Finding) -> str:
    message = escape(finding.message)
    name = escape(finding.file)
    if name and name in message:
        message = message.replace(name, f"<b>{name}</b>", 1)
    elif name:
        message = f"<b>{name}</b>: {message}"
    return f'<p style="margin-top:2px; margin-bottom:6px">{message}</p>'

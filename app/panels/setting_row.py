"""One setting in the settings panel: label, badge, slider, value field, and what is wrong with it.

A row turns what the user does into `edited` signals with the number of the gesture, at most ten
a second while a slider moves and always one on release. It neither posts nor decides.
"""

from PySide6.QtCore import QEvent, QSignalBlocker, QTimer, Signal
from PySide6.QtGui import QEnterEvent, QResizeEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QLabel,
    QVBoxLayout,
    QWidget,
)

from app.elided_label import ElidedLabel
from app.panels.setting_badges import Badge, Tone
from app.panels.setting_controls import Choice, ResetDot, Slider, ValueField
from app.panels.setting_note import SettingNote
from app.panels.setting_values import (
    describe_range,
    format_value,
    gesture_numbers,
    parse_value,
    problem_words,
    slider_scale,
)
from app.theme import set_role
from engine.errors import SettingError
from engine.setting_info import Applies, SettingInfo, Value

POST_INTERVAL_MS = 100
HEAD_SPACING = 4
BADGE_FRAME_PX = 18  # padding and border on both sides
ERROR_STAYS_MS = 8_000  # after the field with a refused text was left
KEY_GESTURE_MS = 700  # key strokes closer than this are one gesture
APPLIES_WORDS = {
    Applies.NOW: "Takes hold at the next step.",
    Applies.NEXT_REFINE: "Takes hold at the next refine.",
    Applies.RESTART: "Takes hold when the run is restarted.",
}


class SettingRow(QWidget):
    """Shows one setting and says how the user wants it."""

    edited = Signal(str, object, int)  # name, value, gesture
    reset_asked = Signal(str)
    action_asked = Signal(str)  # the button in the note was pressed

    def __init__(self, info: SettingInfo, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.info = info
        self.value: Value = info.default
        self.badge_text = ""
        self._badge_shown: Badge | None = None
        self._scale = slider_scale(info)
        self._gesture = 0
        self._unposted = False
        self._has_error = False
        self._note_wanted = ("", "muted", "")
        self.slider: Slider | None = None
        self.field: ValueField | None = None
        self.choice: Choice | None = None
        self.switch: QCheckBox | None = None
        self.note: SettingNote | None = None
        self._post_timer = QTimer(self)
        self._post_timer.setInterval(POST_INTERVAL_MS)
        self._post_timer.setSingleShot(True)
        self._post_timer.timeout.connect(self._post_waiting)
        self._gesture_timer = QTimer(self)
        self._gesture_timer.setInterval(KEY_GESTURE_MS)
        self._gesture_timer.setSingleShot(True)
        self._gesture_timer.timeout.connect(self._end_gesture)
        self._error_timer = QTimer(self)
        self._error_timer.setInterval(ERROR_STAYS_MS)
        self._error_timer.setSingleShot(True)
        self._error_timer.timeout.connect(self._forget_error)
        self._build()
        self.show_value(info.default)

    # --- what the panel tells the row -----------------------------------------------------------

    def show_value(self, value: Value) -> None:
        """Show a value that did not come from this row; an edit in progress is left alone."""
        if self._has_error and value != self.value and self.field is not None:
            self.field.setModified(False)  # what was refused is older
            self.show_error("")
        self.value = value
        if self.slider is not None and self._scale is not None and not self._is_dragging():
            with QSignalBlocker(self.slider):
                self.slider.setValue(self._scale.position(value))
        if self.field is not None and not self.field.isModified():
            self._write_field(value)
        if self.choice is not None:
            with QSignalBlocker(self.choice):
                self.choice.setCurrentText(str(value))
        if self.switch is not None:
            with QSignalBlocker(self.switch):
                self.switch.setChecked(bool(value))

    def set_changed(self, changed: bool, base: Value) -> None:
        """Mark the row as changed by the user; `base` is what a reset would bring back."""
        self.reset_button.setVisible(changed)
        back = format_value(self.info, base, with_unit=True)
        self.reset_button.setToolTip(f"Back to {back} (or double-click the name)")
        self.reset_button.setAccessibleName(f"Reset {self.info.label} to {back}")
        set_role(self.label, "changed" if changed else "")
        if self.switch is not None:
            set_role(self.switch, "changed" if changed else "")

    def set_badge(self, badge: Badge | None) -> None:
        """Show a badge or none."""
        if badge == self._badge_shown:
            return  # asked for often: a style is dear, and training pays for it
        self.badge_text = "" if badge is None else badge.text
        self._badge_shown = badge
        if badge is not None:
            set_role(self._badge, badge.tone.value)
            self._badge.setToolTip(badge.text)
        self._badge.setVisible(badge is not None)
        self._fit_badge()

    def set_note(self, text: str, role: str = "muted", action: str = "") -> None:
        """A line under the row, with a button when `action` names one; "" takes it away."""
        if (text, role, action) == self._note_wanted:
            return
        if not self._has_error:
            self._show_note(text, role, action)
        self._note_wanted = (text, role, action)

    def show_error(self, message: str) -> None:
        """Say beside the field why a value was not taken; "" when all is well again."""
        self._has_error = bool(message)
        if self.field is not None:
            set_role(self.field, "bad" if message else "")
        if message:
            self._show_note(message, "bad", "")
        else:
            self._show_note(*self._note_wanted)

    @property
    def note_text(self) -> str:
        """What stands under the row at present."""
        return self.note.text if self.note is not None and self.note.isVisibleTo(self) else ""

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Shorten the badge where the name would not fit beside it."""
        super().resizeEvent(event)
        self._fit_badge()

    def _fit_badge(self) -> None:
        badge = self._badge_shown
        if badge is None:
            return
        taken = self.label.sizeHint().width() + HEAD_SPACING * 3
        for control in (self.reset_button, self.switch):
            if control is not None and control.isVisibleTo(self):
                taken += control.sizeHint().width()
        room = self.width() - taken - BADGE_FRAME_PX
        fits = self._badge.fontMetrics().horizontalAdvance(badge.text) <= room
        text = badge.text if fits or not badge.short else badge.short
        if self._badge.text() != text:
            self._badge.setText(text)

    def enterEvent(self, event: QEnterEvent) -> None:
        """Offer the reset while the pointer is on the row."""
        super().enterEvent(event)
        self.reset_button.offer(True)

    def leaveEvent(self, event: QEvent) -> None:
        """Offer it no more."""
        super().leaveEvent(event)
        self.reset_button.offer(False)

    # --- building -------------------------------------------------------------------------------

    def _build(self) -> None:
        self._outer = outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(2)
        outer.addLayout(self._build_head())
        line = self._build_control()
        if line is not None:
            outer.addLayout(line)
        name = f"{self.info.group_label}: {self.info.label}"
        for control in (self.field, self.choice, self.switch, self.slider):
            if control is not None:
                control.setAccessibleName(name)
                control.setAccessibleDescription(self.info.meaning)
                control.setToolTip(self._tooltip())
        if self.slider is not None:
            self.slider.setAccessibleName(f"{name}, slider")

    def _build_head(self) -> QHBoxLayout:
        head = QHBoxLayout()
        head.setSpacing(HEAD_SPACING)
        self.reset_button = ResetDot(self)
        self.reset_button.setVisible(False)
        self.reset_button.clicked.connect(self._ask_reset)
        head.addWidget(self.reset_button)
        self.label = ElidedLabel(self.info.label, self)
        self.label.setToolTip(self._tooltip())
        self.label.double_clicked.connect(self._ask_reset)
        if self.info.kind is bool:
            self.switch = QCheckBox(self)
            self.switch.toggled.connect(self._take_switch)
            head.addWidget(self.switch)
        head.addWidget(self.label)
        head.addStretch(1)
        self._badge = QLabel(self)
        set_role(self._badge, Tone.COMING.value)
        self._badge.setVisible(False)
        head.addWidget(self._badge)
        return head

    def _build_control(self) -> QHBoxLayout | None:
        if self.info.kind is bool:
            return None
        line = QHBoxLayout()
        line.setSpacing(8)
        if self.info.choices:
            self.choice = Choice(self.info.choices, self)
            self.choice.textActivated.connect(self._take_choice)
            line.addWidget(self.choice, 1)
            return line
        if self._scale is not None:
            self.slider = Slider(self._scale.last, self)
            self.slider.sliderPressed.connect(self._begin_drag)
            self.slider.valueChanged.connect(self._take_slider)
            self.slider.sliderReleased.connect(self._end_drag)
            line.addWidget(self.slider, 1)
        else:
            allowed = ElidedLabel(describe_range(self.info), self)
            set_role(allowed, "muted")
            line.addWidget(allowed, 1)
        self.field = ValueField(self)
        self.field.setFixedWidth(self.field.fontMetrics().horizontalAdvance("30,000 steps") + 20)
        self.field.editingFinished.connect(self._take_field)
        self.field.abandoned.connect(self._abandon_text)
        self.field.left.connect(self._leave_field)
        line.addWidget(self.field)
        return line

    def _tooltip(self) -> str:
        default = format_value(self.info, self.info.default, with_unit=True)
        facts = f"Default {default}."
        if self.info.kind is not bool:
            unit = f" {self.info.unit}" if self.info.unit else ""
            facts = f"Allowed: {describe_range(self.info)}{unit}. {facts}"
        return (
            f"<p>{self.info.meaning}</p><p>{APPLIES_WORDS[self.info.applies]} {facts}</p>"
            f"<p>On the command line: {self.info.flag}</p>"
        )

    # --- what the user does ---------------------------------------------------------------------

    def _is_dragging(self) -> bool:
        return self.slider is not None and self.slider.isSliderDown()

    def _begin_drag(self) -> None:
        self._gesture = next(gesture_numbers)

    def _take_slider(self, position: int) -> None:
        if self._scale is None or self.field is None:
            return
        if not self._gesture:
            self._gesture = next(gesture_numbers)
        if not self._is_dragging():
            self._gesture_timer.start()
        self.value = self._scale.value(position)
        self.field.setModified(False)
        self.show_error("")
        self._write_field(self.value)
        self._unposted = True
        if not self._post_timer.isActive():
            self._post_waiting()

    def _end_drag(self) -> None:
        self._post_timer.stop()
        self._post_waiting()
        self._gesture = 0

    def _end_gesture(self) -> None:
        if not self._is_dragging():
            self._post_waiting()
            self._gesture = 0

    def _post_waiting(self) -> None:
        if self._unposted:
            self._unposted = False
            self._post_timer.start()
            self.edited.emit(self.info.name, self.value, self._gesture)

    def _take_field(self) -> None:
        if self.field is None or not self.field.isModified():
            return
        try:
            value = parse_value(self.info, self.field.text())
        except SettingError:
            self.show_error(problem_words(self.info, self.field.text()))
            return
        self._settle_field(value)
        self.edited.emit(self.info.name, value, next(gesture_numbers))

    def _abandon_text(self) -> None:
        self._settle_field(self.value)

    def _leave_field(self) -> None:
        """Show the value in force again where the text was refused, and for a while say why."""
        if self._has_error and self.field is not None:
            self.field.setModified(False)
            set_role(self.field, "")
            self._write_field(self.value)
            self._error_timer.start()

    def _forget_error(self) -> None:
        if self.field is not None and not self.field.isModified():
            self.show_error("")

    def _settle_field(self, value: Value) -> None:
        if self.field is not None:
            self.field.setModified(False)
        self.show_error("")
        self.show_value(value)
        if self.field is not None and self.field.hasFocus():
            self.field.selectAll()

    def _take_choice(self, text: str) -> None:
        if text != self.value:
            self.edited.emit(self.info.name, text, next(gesture_numbers))

    def _take_switch(self, on: bool) -> None:
        self.edited.emit(self.info.name, on, next(gesture_numbers))

    def _ask_reset(self) -> None:
        if self.field is not None:
            self.field.setModified(False)
        self.show_error("")
        self.reset_asked.emit(self.info.name)

    def _ask_action(self) -> None:
        self.action_asked.emit(self.info.name)

    # --- drawing --------------------------------------------------------------------------------

    def _write_field(self, value: Value) -> None:
        if self.field is None:
            return
        text = format_value(self.info, value, with_unit=True)
        room = self.field.width() - 18
        if self.field.fontMetrics().horizontalAdvance(text) > room:
            text = format_value(self.info, value)
        if self.field.text() != text:
            self.field.setText(text)

    def _show_note(self, text: str, role: str, action: str) -> None:
        if self.note is None:
            if not text:
                return
            # Made when there is first something to say: most rows never have a note.
            self.note = SettingNote(self)
            self.note.pressed.connect(self._ask_action)
            self._outer.addWidget(self.note)
        self.note.say(text, role, action)

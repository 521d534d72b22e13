"""Asks which scene to open: a recent one, a folder, or a file that describes one."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QDialogButtonBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.dialogs.files import SCENE_FILTER, ask_existing_file, ask_folder
from app.theme import set_role

PATH_ROLE = Qt.ItemDataRole.UserRole


class OpenDialog(QDialog):
    """Emits the chosen path, and whether to start training at once."""

    chosen = Signal(object, bool)  # Path, start

    def __init__(
        self,
        recent: Sequence[Path],
        folder: Path,
        start: bool = True,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Open a scene")
        self.folder = folder
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 16, 16, 16)
        layout.setSpacing(8)
        words = QLabel(
            "A folder of posed photos: COLMAP (sparse/0 and images) or a transforms.json of "
            "instant-ngp, nerfstudio or Blender.",
            self,
        )
        words.setWordWrap(True)
        set_role(words, "muted")
        layout.addWidget(words)
        layout.addLayout(self._build_path_line())
        self.problem = QLabel(" ", self)
        set_role(self.problem, "bad")
        layout.addWidget(self.problem)
        self._build_recent(layout, recent)
        self.start_box = QCheckBox("Start training when it is open", self)
        self.start_box.setChecked(start)
        layout.addWidget(self.start_box)
        layout.addWidget(self._build_buttons())
        self.field.textChanged.connect(self._check)
        self.resize(560, 420)
        self._check()

    @property
    def path(self) -> Path | None:
        """The path in the field, when there is something at it."""
        text = self.field.text().strip()
        path = Path(text).expanduser() if text else None
        return path if path is not None and path.exists() else None

    def accept(self) -> None:
        """Tell the path and close; nothing happens while there is none."""
        path = self.path
        if path is not None:
            super().accept()
            self.chosen.emit(path, self.start_box.isChecked())

    def _build_path_line(self) -> QHBoxLayout:
        line = QHBoxLayout()
        line.setSpacing(8)
        self.field = QLineEdit(self)
        self.field.setPlaceholderText("Path of a folder or file")
        self.field.setAccessibleName("Path of the scene")
        self.folder_button = QPushButton("Folder…", self)
        self.folder_button.setToolTip("Choose a folder")
        self.folder_button.clicked.connect(self._choose_folder)
        self.file_button = QPushButton("File…", self)
        self.file_button.setToolTip("Choose a transforms.json or a COLMAP file")
        self.file_button.clicked.connect(self._choose_file)
        line.addWidget(self.field, 1)
        line.addWidget(self.folder_button)
        line.addWidget(self.file_button)
        return line

    def _build_recent(self, layout: QVBoxLayout, recent: Sequence[Path]) -> None:
        title = QLabel("RECENT", self)
        set_role(title, "title")
        layout.addWidget(title)
        self.recent = QListWidget(self)
        self.recent.setAccessibleName("Recent scenes")
        self.recent.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.recent.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        for path in recent:
            here = path.exists()
            item = QListWidgetItem(f"{path.name}   {path.parent}" + ("" if here else "   missing"))
            item.setData(PATH_ROLE, str(path))
            item.setToolTip(str(path) if here else f"{path} is not there now")
            if not here:
                item.setFlags(Qt.ItemFlag.NoItemFlags)
            self.recent.addItem(item)
        self.recent.currentItemChanged.connect(self._take_recent)
        self.recent.itemActivated.connect(self._open_recent)
        layout.addWidget(self.recent, 1)
        empty = QLabel("Scenes you open will be listed here.", self)
        set_role(empty, "muted")
        layout.addWidget(empty, 1)
        self.recent.setVisible(bool(recent))
        empty.setVisible(not recent)

    def _build_buttons(self) -> QDialogButtonBox:
        buttons = QDialogButtonBox(
            QDialogButtonBox.StandardButton.Open | QDialogButtonBox.StandardButton.Cancel, self
        )
        self.open_button = buttons.button(QDialogButtonBox.StandardButton.Open)
        set_role(self.open_button, "primary")
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        return buttons

    def _take_recent(self, item: QListWidgetItem | None, _before: object) -> None:
        if item is not None:
            self.field.setText(str(item.data(PATH_ROLE)))

    def _open_recent(self, item: QListWidgetItem) -> None:
        self.field.setText(str(item.data(PATH_ROLE)))
        self.accept()

    def _choose_folder(self) -> None:
        self._take_path(ask_folder(self, "Open a scene", self.folder))

    def _choose_file(self) -> None:
        self._take_path(ask_existing_file(self, "Open a scene", self.folder, SCENE_FILTER))

    def _take_path(self, path: Path | None) -> None:
        if path is not None:
            self.folder = path.parent
            self.field.setText(str(path))

    def _check(self) -> None:
        text = self.field.text().strip()
        missing = bool(text) and self.path is None
        self.problem.setText("There is nothing at this path." if missing else " ")
        set_role(self.field, "bad" if missing else "")
        self.open_button.setEnabled(self.path is not None)

"""The folder that an engine is saved to, loaded from or follows, and which of its versions the engine has."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from harken.errors import SegmentError
from harken.language.compiled import Compiler
from harken.live.live_set import LiveSet
from harken.live.loading import restore_calling
from harken.operators.operating import Operating

if TYPE_CHECKING:
    from harken.versions.folder import Folder


class SavedLocation:
    """Where an engine is saved, if it is."""

    def __init__(self) -> None:
        self._folder: Folder | None = None
        self._seen: dict[tuple[int, int], int] = {}
        """The last version seen of each folder, by the folder's identity: it may have several paths."""
        self._rebuilds = True
        self.follows = False
        """Whether a later version is loaded before each match."""
        self.version: int | None = None
        """The version that was last saved or loaded."""

    @classmethod
    def at(cls, path: str | PathLike[str], *, follow: bool, rebuild: bool) -> SavedLocation:
        """The location of an engine to load."""
        from harken.versions.folder import Folder

        location = cls()
        location._folder = Folder(path)
        location.follows, location._rebuilds = follow, rebuild
        return location

    def save(self, path: str | PathLike[str], live: LiveSet) -> int:
        """Write the live set to a folder, which becomes the location. Returns the version."""
        from harken.live.saved import save
        from harken.versions.folder import Folder

        folder = Folder(path)
        self.version = save(folder, self._seen.get(folder.identity()), live)
        self._folder = folder
        self._note()
        live.is_changed = False
        return self.version

    def load(self, options: Mapping[str, Any], operating: Operating) -> LiveSet:
        """Load the live set of the current version. `options` override the saved ones. Raises SegmentError, and
        UnavailableError if subscriptions call operators that are not given."""
        from harken.live.saved import load

        assert self._folder is not None
        saved = load(self._folder, options, operating, self._rebuilds)
        settings, operating = saved.settings, saved.operating
        compiler = Compiler(settings.schema, settings.limits, operating.operators.signatures)
        if saved.index is not None and saved.calling.numbers:
            restore_calling(saved.index, compiler, saved.catalogue, saved.calling.numbers, saved.calling.learnt)
        parts = saved.index, saved.catalogue, saved.numbering
        live = LiveSet(compiler, settings.algorithm, settings.options, *parts, operating, settings.documents)
        live.sequence = saved.sequence
        self.version = saved.version
        self._note()
        return live

    def newer(self, live: LiveSet) -> LiveSet | None:
        """The live set of a later version in the folder; None if there is none.

        Raises SegmentError if the engine has unsaved changes, which would be lost.
        """
        if not self.is_behind():
            return None
        assert self._folder is not None
        if live.is_changed:
            hint = "save to another folder, or load the engine again"
            raise SegmentError(f"{self._folder.path} has a later version, and this engine has changes", hint=hint)
        return self.load({**live.documents.options, **live.options}, live.operating)

    def is_behind(self) -> bool:
        """Whether the folder has a version that the engine has not loaded."""
        return self._folder is not None and self.version is not None and self._folder.has_changed()

    def _note(self) -> None:
        """Remember the version of the folder, and keep it on disk while it is in use."""
        assert self._folder is not None
        assert self.version is not None
        self._seen[self._folder.identity()] = self.version
        self._folder.keep()

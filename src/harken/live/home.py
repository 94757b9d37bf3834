"""The folder that an engine is saved to, loaded from and follows, and the version that it has of it."""

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


class Home:
    """Where an engine lives on disk, if it does."""

    def __init__(self) -> None:
        self._folder: Folder | None = None
        self._seen: dict[tuple[int, int], int] = {}
        """The last version that was seen of a folder, by whatever name it is called."""
        self._rebuilds = True
        self.follows = False
        """Whether later versions are taken over before each match."""
        self.version: int | None = None
        """The version that was last saved or loaded."""

    @classmethod
    def at(cls, path: str | PathLike[str], *, follow: bool, rebuild: bool) -> Home:
        """That of an engine that is to be loaded."""
        from harken.versions.folder import Folder

        home = cls()
        home._folder = Folder(path)
        home.follows, home._rebuilds = follow, rebuild
        return home

    def save(self, path: str | PathLike[str], live: LiveSet) -> int:
        """Write the live set to a folder, which is home from now on. Returns the version."""
        from harken.live.saved import save
        from harken.versions.folder import Folder

        folder = Folder(path)
        self.version = save(folder, self._seen.get(folder.identity()), live)
        self._folder = folder
        self._note()
        live.is_changed = False
        return self.version

    def load(self, options: Mapping[str, Any], operating: Operating) -> LiveSet:
        """The live set of the current version. Options stand in for those that were saved. Raises SegmentError, and
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
        """What the folder holds by now, if that is not what the engine has.

        Raises SegmentError if to take it over would lose changes that were not saved.
        """
        if not self.is_behind():
            return None
        assert self._folder is not None
        if live.is_changed:
            hint = "save to another folder, or load the engine again"
            raise SegmentError(f"{self._folder.path} has a later version, and this engine has changes", hint=hint)
        return self.load({**live.documents.options, **live.options}, live.operating)

    def is_behind(self) -> bool:
        """Whether the folder has a version that the engine does not have."""
        return self._folder is not None and self.version is not None and self._folder.has_changed()

    def _note(self) -> None:
        """Remember which version was seen, and keep it on disk while it is used."""
        assert self._folder is not None
        assert self.version is not None
        self._seen[self._folder.identity()] = self.version
        self._folder.keep()

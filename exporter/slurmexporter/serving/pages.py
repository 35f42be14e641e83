"""Pages as bytes: a chapter is rendered when its readings change, and a scrape joins chapters."""

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from slurmexporter.collecting.latest import Latest
from slurmexporter.families import catalogue
from slurmexporter.families.chapter import Chapter
from slurmexporter.families.picture import Picture
from slurmexporter.settings import Settings
from slurmexporter.text.family import Metric
from slurmexporter.text.people import without_people
from slurmexporter.text.rendering import MetricsText, escape, render

_FORGOTTEN_S: Final = 600.0
"""A name set that was not scraped for this long is no longer rendered."""


class Pages:
    """Keeps the rendered chapters of the name sets that are scraped."""

    def __init__(
        self, latest: Latest, settings: Settings, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._latest = latest
        self._settings = settings
        self._clock = clock
        label = settings.cluster_label
        self._extra = f'cluster="{escape(label)}"' if label else ""
        self._include = re.compile(settings.include) if settings.include else None
        self._exclude = re.compile(settings.exclude) if settings.exclude else None
        self._rendered: dict[int, tuple[tuple[int, ...], MetricsText]] = {}
        """By the chapter's id: the versions of the readings it was rendered from, and its bytes."""
        self._asked: dict[str, float] = {}
        self._rendering = asyncio.Lock()

    async def refresh(self) -> None:
        """Render the scraped chapters whose readings have changed."""
        now_s = self._clock()
        wanted = [name for name, at_s in self._asked.items() if now_s - at_s < _FORGOTTEN_S]
        for name in wanted:
            await self._render(chapters_of(name))

    async def page(self, name: str) -> Sequence[MetricsText]:
        """Return the chapters that have fresh data: of a name set, or of one of slurmctld's own pages."""
        is_new = self._clock() - self._asked.get(name, -_FORGOTTEN_S) >= _FORGOTTEN_S
        self._asked[name] = self._clock()
        chapters = chapters_of(name)
        if is_new:
            await self._render(chapters)
        return [
            self._rendered[id(chapter)][1]
            for chapter in chapters
            if id(chapter) in self._rendered and self._latest.versions(chapter.sources) is not None
        ]

    def sizes(self) -> Mapping[tuple[str, str], MetricsText]:
        """Return the rendered chapters, by name set and chapter."""
        return {
            (name, chapter.name): self._rendered[id(chapter)][1]
            for name, chapters in catalogue.NAMES.items()
            for chapter in chapters
            if id(chapter) in self._rendered
        }

    async def _render(self, chapters: Iterable[Chapter]) -> None:
        async with self._rendering:
            for chapter in chapters:
                versions = self._latest.versions(chapter.sources)
                if versions is None:
                    self._rendered.pop(id(chapter), None)
                    continue
                last = self._rendered.get(id(chapter))
                if last is None or last[0] != versions:
                    # In a thread, so that a scrape need not wait for it.
                    picture = self._latest.picture()
                    rendered = await asyncio.to_thread(self._write, chapter, picture)
                    self._rendered[id(chapter)] = versions, rendered

    def _write(self, chapter: Chapter, picture: Picture) -> MetricsText:
        metrics = chapter.write(picture, self._settings.limits)
        if not self._settings.user_names:
            metrics = without_people(metrics)
        metrics = self._select(metrics)
        return render(metrics, max_series=self._settings.max_series, extra=self._extra)

    def _select(self, metrics: Iterable[Metric]) -> Iterator[Metric]:
        for family, samples in metrics:
            if self._include and not self._include.search(family.name):
                continue
            if self._exclude and self._exclude.search(family.name):
                continue
            yield family, samples


def chapters_of(name: str) -> Sequence[Chapter]:
    """Return the chapters of a page.

    Raises:
        KeyError: If there is no such page.
    """
    if name in catalogue.NATIVE_PAGES:
        return (catalogue.NATIVE_PAGES[name],)
    return catalogue.NAMES[name]

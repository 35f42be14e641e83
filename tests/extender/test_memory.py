"""What is remembered of owners costs no more than a bound, however many and large they are."""

from extender.memory import MOST, MOST_BYTES, Memory, size_of
from slurmruntime.model.objects import KubeObject

FAT = KubeObject(uid="u", name="fat", size_bytes=MOST_BYTES // 4)


def kept(memory: Memory[int, KubeObject | None]) -> list[int]:
    return [key for key in range(2 * MOST) if memory.has(key, 0.0)]


def test_large_objects_push_out_the_oldest() -> None:
    memory = Memory[int, KubeObject | None](30.0, size=size_of)
    for key in range(6):
        memory.put(key, FAT, 0.0)
    memory.put(5, FAT, 0.0)  # again

    assert [2, 3, 4, 5] == kept(memory)
    memory.put(6, KubeObject(uid="u", name="huge", size_bytes=2 * MOST_BYTES), 0.0)
    assert [6] == kept(memory)


def test_so_do_very_many() -> None:
    memory = Memory[int, KubeObject | None](30.0, size=size_of)
    for key in range(MOST + 10):
        memory.put(key, None, 0.0)

    assert list(range(10, MOST + 10)) == kept(memory)


def test_answers_get_old() -> None:
    memory = Memory[int, KubeObject | None](30.0, size=size_of)
    memory.put(1, FAT, 0.0)

    assert memory.get(1) is FAT
    assert memory.has(1, 29.0)
    assert not memory.has(1, 30.0)

"""What a real node's programs are told."""

from pathlib import Path

from sandbox.realnodes import configuration, inside


def test_pressure_changes_only_what_the_kubelet_insists_on() -> None:
    calm, pressed = configuration.kubelet(), configuration.kubelet("disk")

    assert calm["evictionHard"] == configuration.CALM
    assert pressed["evictionHard"] == {**configuration.CALM, "nodefs.available": "99.9%"}
    assert {**calm, "evictionHard": 0} == {**pressed, "evictionHard": 0}


def test_memory_is_used_up_to_half_of_what_the_kubelet_insists_on() -> None:
    assert configuration.ballast_mib(2048, 300) == 2048 - 300 - 50
    assert configuration.ballast_mib(2048, 2040) == 0


def test_what_a_node_uses_is_read_from_either_version_of_cgroups(tmp_path: Path) -> None:
    first, second = (tmp_path / name / "sys" / "fs" / "cgroup" for name in ("v1", "v2"))
    (first / "memory").mkdir(parents=True)
    (first / "memory" / "memory.usage_in_bytes").write_text(f"{300 << 20}\n")
    (first / "memory" / "memory.stat").write_text(f"cache 1\ntotal_inactive_file {100 << 20}\n")
    second.mkdir(parents=True)
    (second / "memory.current").write_text(f"{50 << 20}\n")
    (second / "memory.stat").write_text(f"anon 1\ninactive_file {20 << 20}\n")

    assert inside.used_mib(tmp_path / "v1") == 200
    assert inside.used_mib(tmp_path / "v2") == 30


def test_containerd_is_told_not_to_lower_a_score_it_may_not() -> None:
    assert "restrict_oom_score_adj = true" in configuration.containerd(may_lower_oom_score=False)
    assert "restrict_oom_score_adj = false" in configuration.containerd(may_lower_oom_score=True)

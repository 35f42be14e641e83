"""Host keys that sshd takes: each private key has its public half."""

from cryptography.hazmat.primitives import serialization

from slurmoperator.keys import host_keys
from slurmoperator.rendering.ssh import HOST_KEY_FILES, HOST_KEYS


async def test_each_host_key_has_its_public_half_and_none_is_made_twice() -> None:
    first, second = await host_keys.generate(), await host_keys.generate()

    assert set(HOST_KEY_FILES) == first.keys()
    for file in HOST_KEYS:
        private = serialization.load_ssh_private_key(first[file], password=None)
        public = private.public_key().public_bytes(
            serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        )
        assert public == first[f"{file}.pub"].strip()
        assert file.split("_")[2].encode() in public.split()[0]
        assert first[file] != second[file]

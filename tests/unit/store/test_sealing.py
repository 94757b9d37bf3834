"""Secrets in the store: encrypted with the first key, decrypted with any, and rejected with a wrong one."""

from __future__ import annotations

import base64
from contextlib import closing
from pathlib import Path

import pytest

from harken.errors import ConfigError, StoreError
from harken.store import Store, StoredDelivery, open_store
from harken.store.sealing import Sealing
from unit.store.contents import WEBHOOK, create

OLD, NEW = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 255))
SECRET = "whsec_" + base64.b64encode(b"a secret of a webhook, in clear").decode()


def secret_of(store: Store, id: str = "a") -> str:
    found = store.subscription(id)
    assert found is not None
    assert found.delivery.secret is not None
    return found.delivery.secret


def test_a_secret_is_opened_by_the_key_that_sealed_it() -> None:
    sealing = Sealing([NEW])
    sealed = sealing.sealed(SECRET)
    assert SECRET not in sealed
    assert sealed.startswith(sealing.prefix)
    assert sealing.sealed(SECRET) != sealed, "two that are the same do not look so"
    assert sealing.sealed(sealed) == sealed
    assert sealing.opened(sealed) == SECRET
    assert Sealing([OLD, NEW]).opened(sealed) == SECRET
    assert sealing.opened(SECRET) == SECRET, "what is in clear yet"


def test_the_first_key_seals_what_another_has_sealed() -> None:
    before = Sealing([OLD]).sealed(SECRET)
    rotated = Sealing([NEW, OLD]).sealed(before)
    assert Sealing([NEW]).opened(rotated) == SECRET
    assert Sealing([OLD, NEW]).sealed(before) == before


def test_without_keys_secrets_stay_as_they_are() -> None:
    assert Sealing().sealed(SECRET) == Sealing().opened(SECRET) == SECRET
    with pytest.raises(StoreError, match="there is no key") as raised:
        Sealing().opened(Sealing([NEW]).sealed(SECRET))
    assert "--secrets-key" in str(raised.value.hint)


def test_a_wrong_key_and_a_damaged_secret_are_told_apart() -> None:
    sealed = Sealing([NEW]).sealed(SECRET)
    with pytest.raises(StoreError, match="none of the keys decrypts"):
        Sealing([OLD]).opened(sealed)
    with pytest.raises(StoreError, match="damaged"):
        Sealing([NEW]).opened(sealed[:-8] + "AAAAAAA=")


@pytest.mark.parametrize(
    "key", [NEW, NEW.rstrip("="), NEW.replace("+", "-").replace("/", "_"), f" {NEW}\n"], ids=range(4)
)
def test_keys_in_either_alphabet_of_base64(key: str) -> None:
    assert Sealing([key]).prefix == Sealing([NEW]).prefix


@pytest.mark.parametrize("key", ["", "x", "hush", NEW[:-4], NEW + "AAAA", "ü" * 44, "%" * 44])
def test_what_is_no_key_is_rejected_and_not_repeated(key: str) -> None:
    with pytest.raises(ConfigError, match="32 random bytes in base64") as raised:
        Sealing([key])
    assert len(key) < 4 or key not in str(raised.value)


def test_secrets_in_clear_are_encrypted_once_there_is_a_key(place: str) -> None:
    with closing(open_store(place)) as store:
        create(store, "a", "b", delivery=StoredDelivery(WEBHOOK.url, SECRET, max_delay=1.5))
        create(store, "later", delivery=StoredDelivery(max_delay=1.0))
        create(store, "plain")
        token_secret = store.token_secret
        assert store.seal_secrets() == 0
        assert secret_of(store) == SECRET
    with closing(open_store(place, secrets_keys=[OLD])) as store:
        assert store.seal_secrets() == 2
        assert store.seal_secrets() == 0
        assert store.sealing.opened(secret_of(store)) == SECRET != secret_of(store)
        assert store.subscription("later").delivery == StoredDelivery(max_delay=1.0)  # type: ignore[union-attr]
        first = secret_of(store)
    with closing(open_store(place, secrets_keys=[OLD])) as store:
        assert (store.seal_secrets(), secret_of(store), store.token_secret) == (0, first, token_secret)
    with closing(open_store(place, secrets_keys=[NEW, OLD])) as store:
        assert store.seal_secrets() == 2
        assert (store.sealing.opened(secret_of(store)), store.token_secret) == (SECRET, token_secret)
    with closing(open_store(place, secrets_keys=[NEW])) as store:
        assert store.seal_secrets() == 0
        assert (store.sealing.opened(secret_of(store, "b")), store.token_secret) == (SECRET, token_secret)


def test_a_store_is_rejected_without_its_key(place: str) -> None:
    with closing(open_store(place, secrets_keys=[NEW])) as store:
        store.seal_secrets()  # also one without a webhook knows its key
    for keys in ([], [OLD]):
        with closing(open_store(place, secrets_keys=keys)) as store, pytest.raises(StoreError, match="key"):
            store.seal_secrets()
    with closing(open_store(place)) as store:  # who needs no secret needs no key
        create(store, "a")
        assert store.subscription("a") is not None


def test_what_was_in_clear_is_not_left_in_the_files(tmp_path: Path) -> None:
    path = str(tmp_path / "store.db")
    with closing(open_store(path)) as store:
        create(store, *(f"id{number}" for number in range(200)), delivery=StoredDelivery(WEBHOOK.url, SECRET))
        token_secret = store.token_secret.hex().encode()
    assert SECRET.encode() in (tmp_path / "store.db").read_bytes()
    with closing(open_store(path, secrets_keys=[NEW])) as store:
        assert store.seal_secrets() == 200
        for file in tmp_path.iterdir():
            content = file.read_bytes()
            assert SECRET.encode() not in content, file.name
            assert token_secret not in content, file.name

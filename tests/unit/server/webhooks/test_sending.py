"""Sending to receivers that run here: what arrives, what comes back, and receivers that mean harm."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Awaitable, Sequence
from ipaddress import IPv6Network
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from harken.server.webhooks.call_outcomes import CallOutcome, OutcomeKind
from harken.server.webhooks.sending import Sender
from harken.server.webhooks.signing import WebhookSecretError, new_secret
from unit.server.webhooks.receivers import HERE, Answer, Inbox, answering, receiving, writing

SECRET = new_secret()
BODY = b'{"id":"7"}'
MEBIBYTE = 1 << 20
ENDLESS = 1_000_000


def post(sender: Sender, url: str, **more: Any) -> Awaitable[CallOutcome]:
    return sender.send(**{"url": url, "secrets": [SECRET], "message_id": "msg_7", "body": BODY} | more)


def sent(answer: Answer, path: str = "/hook", deadline: float = 15.0) -> tuple[CallOutcome, Inbox]:
    """What comes of one message to a receiver with this answer, and the receiver."""

    async def run() -> tuple[CallOutcome, Inbox]:
        async with receiving(answer) as receiver, Sender(allow=HERE, deadline=deadline) as sender:
            return await post(sender, receiver.url(path)), receiver

    return asyncio.run(run())


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as taken:
            taken.bind(("::1", 0))
    except OSError:
        return False
    return True


# What arrives


def test_message_is_posted_and_delivered() -> None:
    outcome, receiver = sent(answering("200 OK", b"thanks"), "/a%20b?c=d")
    assert outcome == CallOutcome(OutcomeKind.DELIVERED, "HTTP 200", 200)
    (request,) = receiver.requests
    assert request.line == "POST /a%20b?c=d HTTP/1.1"
    assert request.body == BODY
    assert request.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["user-agent"] == "Harken"
    assert request.headers["accept-encoding"] == "identity"
    assert request.headers["connection"] == "close"


def test_library_accepts_what_arrives() -> None:
    _, receiver = sent(answering("204 No Content"))
    (request,) = receiver.requests
    assert Webhook(SECRET).verify(request.body, request.headers) == {"id": "7"}


def test_every_secret_signs_and_the_content_type_is_the_callers() -> None:
    other = new_secret()

    async def run() -> Inbox:
        async with receiving(answering("200 OK")) as receiver, Sender(allow=HERE) as sender:
            await post(sender, receiver.url(), secrets=[other, SECRET], content_type="application/cloudevents+json")
            return receiver

    (request,) = asyncio.run(run()).requests
    for secret in (other, SECRET):
        Webhook(secret).verify(request.body, request.headers)
    assert request.headers["content-type"] == "application/cloudevents+json"


def test_cookies_are_not_kept_and_connections_are_not_shared() -> None:
    async def run() -> Inbox:
        answer = answering("200 OK", b"", "Set-Cookie: a=b; Path=/")
        async with receiving(answer) as receiver, Sender(allow=HERE) as sender:
            for _ in range(3):
                await post(sender, receiver.url())
            return receiver

    receiver = asyncio.run(run())
    assert receiver.connections == len(receiver.requests) == 3
    assert not any("cookie" in request.headers for request in receiver.requests)


def test_environment_has_no_say(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    assert sent(answering("200 OK"))[0].kind is OutcomeKind.DELIVERED


def test_url_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert sent(answering("200 OK"), "/hook?key=hush")[0].kind is OutcomeKind.DELIVERED
    assert "hush" not in caplog.text


# What comes back


def test_gone() -> None:
    outcome, _ = sent(answering("410 Gone", b"unsubscribe"))
    assert outcome == CallOutcome(OutcomeKind.GONE, "HTTP 410: unsubscribe", 410)


def test_receiver_asks_to_wait() -> None:
    outcome, _ = sent(answering("429 Too Many Requests", b"slower", "Retry-After: 120"))
    assert outcome == CallOutcome(OutcomeKind.RETRY, "HTTP 429: slower", 429, 120.0)


def test_error_of_the_receiver() -> None:
    outcome, _ = sent(answering("500 Internal Server Error", b"<h1>\x00down</h1>", "Retry-After: 9"))
    assert outcome == CallOutcome(OutcomeKind.RETRY, "HTTP 500: <h1> down</h1>", 500)


def test_redirect_is_not_followed() -> None:
    async def run() -> tuple[CallOutcome, Inbox]:
        async with receiving(answering("200 OK")) as inner, Sender(allow=HERE) as sender:
            redirect = answering("307 Temporary Redirect", b"", f"Location: {inner.url()}")
            async with receiving(redirect) as outer:
                return await post(sender, outer.url()), inner

    outcome, inner = asyncio.run(run())
    assert (outcome.kind, outcome.status) == (OutcomeKind.RETRY, 307)
    assert inner.connections == 0


def test_nobody_listens() -> None:
    async def run() -> CallOutcome:
        async with Sender(allow=HERE) as sender:
            return await post(sender, f"http://127.0.0.1:{free_port()}/hook?key=hush")

    outcome = asyncio.run(run())
    assert outcome == CallOutcome(OutcomeKind.RETRY, outcome.reason)
    assert outcome.reason.startswith("no connection")
    assert "hush" not in outcome.reason


def test_name_that_does_not_resolve() -> None:
    async def nobody(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, "not known")

    async def run() -> CallOutcome:
        async with Sender(resolve=nobody) as sender:
            return await post(sender, "https://hooks.example/")

    assert asyncio.run(run()) == CallOutcome(OutcomeKind.RETRY, "the name of the host does not resolve")


@pytest.mark.parametrize("data", [b"", b"SSH-2.0-OpenSSH_9.6\r\n", b"\x00\xff\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n"])
def test_answer_that_is_not_http(data: bytes) -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        writer.close()

    outcome, _ = sent(answer)
    assert (outcome.kind, outcome.status) == (OutcomeKind.RETRY, None)
    assert outcome.reason.startswith("no answer")


def test_secret_that_is_none_is_the_callers_error() -> None:
    async def run() -> None:
        async with Sender(allow=HERE) as sender:
            await post(sender, "http://127.0.0.1:9999/", secrets=["hush"])

    with pytest.raises(WebhookSecretError):
        asyncio.run(run())


# Receivers that mean harm


def test_address_that_is_not_public_is_rejected_and_not_connected_to() -> None:
    async def run() -> tuple[CallOutcome, Inbox]:
        async with receiving(answering("200 OK")) as receiver, Sender() as sender:
            return await post(sender, receiver.url()), receiver

    outcome, receiver = asyncio.run(run())
    assert outcome == CallOutcome(OutcomeKind.REJECTED, "`127.0.0.1` is not a public address")
    assert receiver.connections == 0


def test_localhost_is_rejected_by_what_the_system_resolves() -> None:
    async def run() -> tuple[CallOutcome, Inbox]:
        async with receiving(answering("200 OK")) as receiver, Sender() as sender:
            return await post(sender, receiver.url(host="localhost")), receiver

    outcome, receiver = asyncio.run(run())
    assert outcome.kind is OutcomeKind.REJECTED
    assert receiver.connections == 0


def test_name_that_changes_its_address_is_connected_to_where_it_was_checked() -> None:
    asked: list[str] = []

    async def rebinding(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

    async def run() -> tuple[CallOutcome, Inbox]:
        async with receiving(answering("200 OK")) as receiver, Sender(allow=HERE, resolve=rebinding) as sender:
            return await post(sender, receiver.url(host="rebinding.example")), receiver

    outcome, receiver = asyncio.run(run())  # nothing listens on 127.0.0.2
    assert outcome.kind is OutcomeKind.DELIVERED
    assert asked == ["rebinding.example"]
    assert receiver.requests[0].headers["host"] == f"rebinding.example:{receiver.port}"


def test_next_address_is_tried_when_one_does_not_connect() -> None:
    async def two(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.2", "127.0.0.1"]

    async def run() -> CallOutcome:
        async with receiving(answering("200 OK")) as receiver, Sender(allow=HERE, resolve=two) as sender:
            return await post(sender, receiver.url(host="hooks.example"))

    assert asyncio.run(run()).kind is OutcomeKind.DELIVERED


def test_name_with_many_addresses_does_not_make_the_server_try_them_all() -> None:
    async def many(host: str, port: int) -> Sequence[str]:
        return [*(f"127.0.0.{number}" for number in range(2, 10)), "127.0.0.1"]

    async def run() -> tuple[CallOutcome, Inbox]:
        async with receiving(answering("200 OK")) as receiver, Sender(allow=HERE, resolve=many) as sender:
            return await post(sender, receiver.url(host="hooks.example")), receiver

    outcome, receiver = asyncio.run(run())
    assert outcome.kind is OutcomeKind.RETRY
    assert receiver.connections == 0


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 address of its own")
def test_ipv6_address_is_sent_to() -> None:
    async def run() -> tuple[CallOutcome, Inbox]:
        allow = [IPv6Network("::1/128")]
        async with receiving(answering("200 OK"), host="::1") as receiver, Sender(allow=allow) as sender:
            return await post(sender, receiver.url(host="[::1]")), receiver

    outcome, receiver = asyncio.run(run())
    assert outcome.kind is OutcomeKind.DELIVERED
    assert receiver.requests[0].headers["host"] == f"[::1]:{receiver.port}"


def test_message_is_not_sent_to_a_second_address_after_an_answer_failed() -> None:
    async def two(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1", "127.0.0.2"]

    async def run() -> tuple[CallOutcome, Inbox]:
        broken = writing(b"HTTP/1.1 nonsense\r\n\r\n")
        async with receiving(broken, host="0.0.0.0") as receiver, Sender(allow=HERE, resolve=two) as sender:
            return await post(sender, receiver.url(host="hooks.example")), receiver

    outcome, receiver = asyncio.run(run())
    assert outcome.kind is OutcomeKind.RETRY
    assert receiver.connections == 1


@pytest.mark.parametrize("drip", [b"", b"HTTP/1.1 200 OK\r\nX: y", b"HTTP/1.1 100 Continue\r\n\r\n"])
def test_receiver_that_drips_a_head_is_left_at_the_deadline(drip: bytes) -> None:
    start = time.monotonic()
    outcome, receiver = sent(writing(drip, every=0.05, times=ENDLESS), deadline=1.0)
    assert time.monotonic() - start > 0.9
    assert outcome == CallOutcome(OutcomeKind.RETRY, "no answer within 1 s")
    assert len(receiver.requests) == 1


@pytest.mark.parametrize(("status", "kind"), [(200, OutcomeKind.DELIVERED), (500, OutcomeKind.RETRY)])
def test_receiver_that_drips_a_body_is_left_at_the_deadline_and_its_status_counts(
    status: int, kind: OutcomeKind
) -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {status} So\r\nContent-Length: 1000\r\n\r\n".encode())
        await writing(b"x", every=0.05, times=ENDLESS)(writer)

    start = time.monotonic()
    outcome, _ = sent(answer, deadline=1.0)
    assert time.monotonic() - start > 0.9
    assert (outcome.kind, outcome.status) == (kind, status)


def test_slow_name_service_is_left_at_the_deadline() -> None:
    async def slow(host: str, port: int) -> Sequence[str]:
        await asyncio.sleep(3_600)
        return []

    async def run() -> CallOutcome:
        async with Sender(resolve=slow, deadline=0.2) as sender:
            return await post(sender, "https://hooks.example/")

    assert asyncio.run(run()) == CallOutcome(OutcomeKind.RETRY, "no answer within 0.2 s")


def test_names_that_hang_do_not_hold_up_others(monkeypatch: pytest.MonkeyPatch) -> None:
    many, hung, end = 100, threading.Semaphore(0), threading.Event()

    def looked_up(host: str, port: int) -> list[str]:
        if host.startswith("hung"):
            hung.release()
            end.wait(600)
        return ["127.0.0.1"]

    monkeypatch.setattr("harken.server.webhooks.addresses._looked_up", looked_up)

    async def run() -> CallOutcome:
        allowed = {"allow": HERE, "deadline": 600.0, "connections": many + 1}
        async with receiving(answering("200 OK")) as receiver, Sender(**allowed) as sender:
            urls = [receiver.url(host=f"hung{number}.example") for number in range(many)]
            tasks = [asyncio.ensure_future(post(sender, url)) for url in urls]
            try:
                return await asyncio.wait_for(post(sender, receiver.url(host="good.example")), 60)
            finally:
                end.set()
                await asyncio.gather(*tasks)

    assert asyncio.run(run()).kind is OutcomeKind.DELIVERED
    assert all(hung.acquire(blocking=False) for _ in range(many)), "they hung before"


@pytest.mark.parametrize("length", ["Content-Length: 1073741824", "Transfer-Encoding: chunked"])
def test_huge_answer_is_not_read_to_its_end(length: str) -> None:
    written = 0

    async def answer(writer: asyncio.StreamWriter) -> None:
        nonlocal written
        writer.write(f"HTTP/1.1 500 So\r\n{length}\r\n\r\n".encode())
        piece = b"x" * MEBIBYTE
        piece = piece if length.startswith("Content") else b"100000\r\n" + piece + b"\r\n"
        while written < 1024:
            writer.write(piece)
            await writer.drain()
            written += 1

    outcome, _ = sent(answer)
    assert outcome.reason == "HTTP 500: " + "x" * 200
    assert written < 64  # what buffers of the system hold


def test_endless_head_is_given_up() -> None:
    outcome, _ = sent(writing(b"HTTP/1.1 200 OK\r\nX: " + b"x" * MEBIBYTE), deadline=5.0)
    assert (outcome.kind, outcome.status) == (OutcomeKind.RETRY, None)


def test_packed_answer_is_not_unpacked() -> None:
    outcome, _ = sent(answering("500 So", b"plain", "Content-Encoding: gzip"))
    assert outcome.reason == "HTTP 500: plain"


@pytest.mark.seconds
def test_slow_receivers_do_not_take_each_others_time() -> None:
    """With one connection the next message waits for the first, and has its whole deadline after that."""

    async def run() -> list[CallOutcome]:
        slow = writing(b"", every=1.5)

        async def answer(writer: asyncio.StreamWriter) -> None:
            await slow(writer)
            await answering("200 OK")(writer)

        async with receiving(answer) as receiver, Sender(allow=HERE, deadline=4.0, connections=1) as sender:
            return await asyncio.gather(*(post(sender, receiver.url()) for _ in range(3)))

    assert [outcome.kind for outcome in asyncio.run(run())] == [OutcomeKind.DELIVERED] * 3


def test_connections_are_used_and_bounded() -> None:
    present, most = 0, 0
    three = asyncio.Event()

    async def answer(writer: asyncio.StreamWriter) -> None:
        nonlocal present, most
        present += 1
        most = max(most, present)
        if present == 3:
            three.set()
        await three.wait()  # none is answered before there are three
        await asyncio.sleep(0.05)
        present -= 1
        await answering("200 OK")(writer)

    async def run() -> list[CallOutcome]:
        async with receiving(answer) as receiver, Sender(allow=HERE, deadline=60, connections=3) as sender:
            return await asyncio.gather(*(post(sender, receiver.url()) for _ in range(9)))

    assert [outcome.kind for outcome in asyncio.run(run())] == [OutcomeKind.DELIVERED] * 9
    assert most == 3


def test_connections_come_free_after_the_deadline() -> None:
    async def run() -> tuple[list[CallOutcome], CallOutcome]:
        async with (
            receiving(writing(b"", every=3_600)) as silent,
            receiving(answering("200 OK")) as good,
            Sender(allow=HERE, deadline=0.3, connections=2) as sender,
        ):
            late = await asyncio.gather(*(post(sender, silent.url()) for _ in range(6)))
            async with asyncio.timeout(60):
                while (last := await post(sender, good.url())).kind is not OutcomeKind.DELIVERED:
                    pass  # the machine is slow
            return late, last

    late, last = asyncio.run(run())
    assert {outcome.kind for outcome in late} == {OutcomeKind.RETRY}
    assert last.kind is OutcomeKind.DELIVERED


def test_cancelled_message_frees_its_connection() -> None:
    async def run() -> CallOutcome:
        async with (
            receiving(writing(b"", every=3_600)) as silent,
            receiving(answering("200 OK")) as good,
            Sender(allow=HERE, deadline=600, connections=1) as sender,
        ):
            task = asyncio.ensure_future(post(sender, silent.url()))
            while not silent.requests:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await asyncio.wait_for(post(sender, good.url()), 60)

    assert asyncio.run(run()).kind is OutcomeKind.DELIVERED

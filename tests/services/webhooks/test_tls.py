"""By TLS a call goes to the checked number, and the certificate must be of the name."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.services.webhooks.receiver import Receiver, receiving
from tests.services.webhooks.test_destinations import HOME, Names, sent

from fairway.core.webhooks.retries import Answer
from fairway.runtime import pinned_http

NAME = "hooks.example"


def certificate(folder: Path) -> Path:
    """Its own authority: key and certificate in one file."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.PrivateFormat.PKCS8
    file = folder / "receiver.pem"
    text = key.private_bytes(pem, plain, serialization.NoEncryption()) + made.public_bytes(pem)
    file.write_bytes(text)
    return file


async def test_the_certificate_is_of_the_name_and_not_of_the_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, asked = certificate(tmp_path), list[str | None]()
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(file)
    theirs.sni_callback = lambda socket, name, context: asked.append(name)
    trusting = ssl.create_default_context(cafile=str(file))
    async with receiving(tls=theirs) as receiver:
        assert "certificate" in (await _called(receiver, NAME)).error  # nobody vouches for it
        monkeypatch.setattr(pinned_http, "tls_context", lambda: trusting)
        assert (await _called(receiver, NAME)).status == 200
        assert "certificate" in (await _called(receiver, "other.example")).error
    assert asked == [NAME, NAME, "other.example"]
    assert receiver.received[0].headers["host"] == f"{NAME}:{receiver.port}"


async def _called(receiver: Receiver, name: str) -> Answer:
    return await sent(f"https://{name}:{receiver.port}/", HOME, Names(["127.0.0.1"]))

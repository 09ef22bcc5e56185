"""Certificates of servers and clients, valid and not, as PEM files."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = timedelta(days=1)
NOW = datetime.now(UTC).replace(microsecond=0)


@dataclass
class Authority:
    """A certificate authority that writes PEM files."""

    folder: Path
    name: str = "ca"
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def __post_init__(self) -> None:
        subject = name_of(self.name)
        certificate = self._build(subject, self.key, NOW + 100 * DAY)
        certificate = certificate.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        signed = certificate.sign(self.key, hashes.SHA256())
        self._write(self.name, signed, self.key)

    def _build(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, end: datetime, start: datetime = NOW - 30 * DAY
    ) -> x509.CertificateBuilder:
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(name_of(self.name))
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        return builder.not_valid_before(start).not_valid_after(end)

    def issue(
        self, file: str, *, address: str = "127.0.0.1", end: datetime = NOW + DAY, start: datetime = NOW - 30 * DAY
    ) -> None:
        """Write `file`.pem and `file`.key for a server or client."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._build(name_of(file), key, end, start)
        # Brokers of Pulsar 5.0 reach themselves as `localhost`.
        host = [x509.DNSName("localhost")] if address == "127.0.0.1" else []
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address)), *host])
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        signed = (
            builder.add_extension(names, critical=False)
            .add_extension(usage, critical=False)
            .sign(self.key, hashes.SHA256())
        )
        self._write(file, signed, key)

    def _write(self, file: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        (self.folder / f"{file}.pem").write_bytes(certificate.public_bytes(encoding))
        (self.folder / f"{file}.key").write_bytes(key.private_bytes(encoding, form, serialization.NoEncryption()))


def name_of(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

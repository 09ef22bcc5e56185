package org.bouncycastle.jce.provider;

import java.security.Provider;

/** Pulsar asks for this class before it uses TLS at all. With a key store of Java's own it needs nothing of it. */
public final class BouncyCastleProvider extends Provider {
    public BouncyCastleProvider() {
        super("BC", "0", "Nothing is in here.");
    }
}

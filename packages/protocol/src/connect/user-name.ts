const USER_NAME = /^trellis:([A-Za-z0-9_-]{43}):([A-Za-z0-9_-]{1,256})$/;
const NONCE = /^[A-Za-z0-9_-]{11,64}$/;

/** The connect token: the digest itself. With the nonce signature it proves who holds the session key. */
export function connectToken(digest: string): string {
  return digest;
}

/** Whether a server's nonce has the form of one. The session key signs nothing else without a domain label. */
export function isNonce(text: string): boolean {
  return NONCE.test(text);
}

/** The NATS user name of a connection. */
export function userName(digest: string, connection: string): string {
  return `trellis:${digest}:${connection}`;
}

/** The digest and connection of a user name; `undefined` for a name of another kind. */
export function parseUserName(name: string): { digest: string; connection: string } | undefined {
  const [, digest, connection] = USER_NAME.exec(name) ?? [];
  return digest === undefined || connection === undefined ? undefined : { digest, connection };
}

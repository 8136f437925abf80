/** The spellings under which a loopback server is reached; proofs name one of them. */
export function loopbackOrigins(port: number): string[] {
  return [`http://127.0.0.1:${port}`, `http://localhost:${port}`, `http://[::1]:${port}`];
}

/**
 * The origins that a proof may name, likeliest first. Only configured ones count; the Host header merely
 * picks which of them to try first, so that one signature check is the rule.
 */
export function candidateOrigins(configured: readonly string[], host: string | undefined): readonly string[] {
  const named = configured.filter((origin) => host !== undefined && hostOf(origin) === host.toLowerCase());
  return [...named, ...configured.filter((origin) => !named.includes(origin))];
}

function hostOf(origin: string): string {
  return origin.slice(origin.indexOf("://") + 3).toLowerCase();
}

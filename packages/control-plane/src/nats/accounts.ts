import { quote, quoteList } from "./conf-text.ts";
import { decodePublicNkey } from "./nkeys.ts";
import type { PlatformPublicKeys } from "./platform-keys.ts";

const DIRECT_GET = "$JS.API.DIRECT.GET";

/** What of CTL an application may ask for: its own subject, and the direct get that it becomes. */
const READS = [
  ["ctl.get.authorization.*", `${DIRECT_GET}.TRELLIS_AUTHORIZATIONS.authorization.*`],
  ["ctl.get.grants.*", `${DIRECT_GET}.TRELLIS_AUTHORIZATIONS.grants.*`],
  ["ctl.get.notice.*.*", `${DIRECT_GET}.TRELLIS_NOTICES.notice.*.*`],
] as const;

/** Many messages in one answer (a batch direct get); its body says which. */
const BATCH_READ = ["ctl.get.notices", `${DIRECT_GET}.TRELLIS_NOTICES`] as const;

export interface AccountLimits {
  /** JetStream limits of APP, as nats.conf writes sizes. Default: none of its own, the server's count. */
  readonly appFile?: string;
  readonly appMemory?: string;
  readonly ctlFile?: string;
  readonly ctlMemory?: string;
}

/**
 * The accounts and the callout: who exists on the broker. Public keys only.
 *
 * Invariants:
 * 1. APP reads CTL through these imports alone: direct gets of the two streams, and the notices that CTL
 *    republishes. Nothing of APP is ever stored in CTL: no ingest subject crosses.
 * 2. Every static user stands in `auth_users`; everybody else is sent to the callout.
 */
export function renderAccounts(keys: PlatformPublicKeys, limits: AccountLimits = {}): string {
  requireKeys(keys);
  const users = (key: string) => `users: [ { nkey: ${key} } ]`;
  const stream = `{ stream: ${quote("ctl.notice.>")}, accounts: [ APP ] }`;
  const exports = [stream, ...READS.map(([, get]) => service(get)), service(BATCH_READ[1], "Stream")];
  const imports = [
    `{ stream: { account: CTL, subject: ${quote("ctl.notice.>")} } }`,
    ...[...READS, BATCH_READ].map(
      ([to, get]) => `{ service: { account: CTL, subject: ${quote(get)} }, to: ${quote(to)} }`,
    ),
  ];
  return `accounts {
  SYS { ${users(keys.sys)} }
  AUTH { ${users(keys.callout)} }
  CTL {
    jetstream ${jetStream(limits.ctlFile, limits.ctlMemory)}
    ${users(keys.ctl)}
    exports: [
${lines(exports, 6)}
    ]
  }
  APP {
    jetstream ${jetStream(limits.appFile, limits.appMemory)}
    ${users(keys.app)}
    imports: [
${lines(imports, 6)}
    ]
  }
}
system_account: SYS
authorization {
  timeout: 4
  auth_callout {
    issuer: ${keys.issuer}
    account: AUTH
    auth_users: ${quoteList([keys.sys, keys.callout, keys.ctl, keys.app])}
    xkey: ${keys.xkey}
  }
}
`;
}

function service(subject: string, responseType: "Singleton" | "Stream" = "Singleton"): string {
  return `{ service: ${quote(subject)}, response_type: ${responseType}, accounts: [ APP ] }`;
}

function jetStream(file: string | undefined, memory: string | undefined): string {
  const limits = [
    ...(file === undefined ? [] : [`max_file: ${file}`]),
    ...(memory === undefined ? [] : [`max_mem: ${memory}`]),
  ];
  return limits.length === 0 ? ": enabled" : `{ ${limits.join(", ")} }`;
}

function lines(items: readonly string[], indent: number): string {
  return items.map((item) => `${" ".repeat(indent)}${item}`).join("\n");
}

/** The keys stand unquoted in the text: nothing but a key may get there. */
function requireKeys(keys: PlatformPublicKeys): void {
  for (const [role, key] of Object.entries(keys)) {
    const kind = role === "issuer" ? "account" : role === "xkey" ? "curve" : "user";
    if (decodePublicNkey(kind, key) === undefined) throw new Error(`${role}: not a public NATS ${kind} key`);
  }
}

import type { RpcAction } from "@trellis/contract";
import { feedSubject, type GrantedSurface, operationSubject, rpcSubject } from "@trellis/protocol";

/** Of which surface a call is. */
export type CallKind = "rpc" | "feed" | "operation";

/**
 * What is called, as the calling machinery sees it: an RPC, or the call that opens a feed or starts an operation.
 * Each kind has subjects and grants of its own; frames, deadlines, retries and admission are the same.
 */
export interface Callable extends Omit<RpcAction, "kind"> {
  readonly kind: CallKind;
}

const subjects = { rpc: rpcSubject, feed: feedSubject, operation: operationSubject };

const surfaces = { rpc: "rpc", feed: "feeds", operation: "operations" } as const satisfies Record<
  CallKind,
  GrantedSurface
>;

/** Where calls to a deployment go. */
export function callSubject({ kind, api, name }: Callable, deployment: string): string {
  return subjects[kind]({ api, deployment, action: name });
}

/** Under which word grants speak of the kind. */
export function surfaceOf(kind: CallKind): (typeof surfaces)[CallKind] {
  return surfaces[kind];
}

import { actionToken, apiToken, encodeToken, requireToken } from "./token.ts";

/** An action of an API as one deployment provides it. */
export interface ActionAddress {
  readonly api: string;
  readonly deployment: string;
  readonly action: string;
}

/** Where calls of an RPC go; the providers' queue group is the subject itself. */
export function rpcSubject(address: ActionAddress): string {
  return `rpc.v1.${addressed(address)}`;
}

/** Where a feed is opened. */
export function feedSubject(address: ActionAddress): string {
  return `feed.v1.${addressed(address)}`;
}

/** Where an operation is started and controlled. */
export function operationSubject(address: ActionAddress): string {
  return `operation.v1.${addressed(address)}`;
}

function addressed({ api, deployment, action }: ActionAddress): string {
  return `${apiToken(api)}.${requireToken(deployment, "deployment")}.${actionToken(action)}`;
}

/** Where an event is published; each parameter becomes one token, whatever its text. */
export function eventSubject(event: { api: string; action: string; params?: readonly string[] }): string {
  return eventTokens(event.api, event.action, event.params?.map(encodeToken));
}

/** The filter for events of one kind; `undefined` as a parameter matches every value, text matches only itself. */
export function eventFilter(event: {
  api: string;
  action: string;
  params?: readonly (string | undefined)[];
}): string {
  const tokens = event.params?.map((param) => (param === undefined ? "*" : encodeToken(param)));
  return eventTokens(event.api, event.action, tokens);
}

function eventTokens(api: string, action: string, tokens: readonly string[] | undefined): string {
  return ["events.v1", apiToken(api), actionToken(action), ...(tokens ?? [])].join(".");
}

/** Control of one provider connection (cancel, credit, close, transfer), or of a whole deployment with `"all"`. */
export function controlSubject(deployment: string, connection: string): string {
  return `ctl.v1.${requireToken(deployment, "deployment")}.${requireToken(connection, "connection")}`;
}

/** What every reply to a connection starts with, without a final dot. */
export function inboxPrefix(connection: string): string {
  return `_INBOX.${requireToken(connection, "connection")}`;
}

/** Where a provider answers a caller; `n` is the caller's own counter. */
export function replySubject(connection: string, n: string): string {
  return `${inboxPrefix(connection)}.r.${requireToken(n, "reply number")}`;
}

/** Where JetStream answers; apart from the replies of providers, so that neither can be taken for the other. */
export function jetStreamReplySubject(connection: string, n: string): string {
  return `${inboxPrefix(connection)}.j.${requireToken(n, "reply number")}`;
}

/** Where heartbeats of a connection go. */
export function healthSubject(source: { kind: string; deployment: string; connection: string }): string {
  const { kind, deployment, connection } = source;
  return `health.v1.${requireToken(kind, "kind")}.${requireToken(deployment, "deployment")}.${requireToken(connection, "connection")}`;
}

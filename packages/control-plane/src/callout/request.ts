import { Type } from "typebox";
import { Compile } from "typebox/compile";
import { verifyServerJwt } from "./jwt.ts";

const Claims = Type.Object({
  aud: Type.Literal("nats-authorization-request"),
  exp: Type.Optional(Type.Number()),
  nats: Type.Object({
    server_id: Type.Object({ id: Type.String() }),
    user_nkey: Type.String(),
    client_info: Type.Object({
      kind: Type.Optional(Type.String()),
      type: Type.Optional(Type.String()),
      nonce: Type.Optional(Type.String()),
    }),
    connect_opts: Type.Object({
      nkey: Type.Optional(Type.String()),
      sig: Type.Optional(Type.String()),
      auth_token: Type.Optional(Type.String()),
    }),
  }),
});

const compiled = Compile(Claims);

/** What a server asks about one connecting client, freed of what we do not decide by. */
export interface CalloutRequest {
  serverId: string;
  /** The one-time user key that the answer must name. */
  userNkey: string;
  /** `nats` for TCP, `websocket`, or something that Trellis does not speak. */
  transport: string | undefined;
  nkey: string | undefined;
  nonce: string | undefined;
  signature: string | undefined;
  token: string | undefined;
}

/** Reads the server's signed question; `undefined` unless that very server signed it and it is in date. */
export function readCalloutRequest(token: string, now: number): CalloutRequest | undefined {
  const verified = verifyServerJwt(token);
  if (verified === undefined) return undefined;
  const { issuer, claims } = verified;
  if (!compiled.Check(claims)) return undefined;
  const { server_id, user_nkey, client_info, connect_opts } = claims.nats;
  if (server_id.id !== issuer) return undefined;
  // The server's clock may differ from ours by a little; its own timeout decides when the answer is late.
  if (claims.exp !== undefined && claims.exp * 1000 + 60_000 < now) return undefined;
  const client = client_info.kind === undefined || client_info.kind === "Client";
  return {
    serverId: server_id.id,
    userNkey: user_nkey,
    transport: client ? client_info.type : undefined,
    nkey: connect_opts.nkey,
    nonce: client_info.nonce,
    signature: connect_opts.sig,
    token: connect_opts.auth_token,
  };
}

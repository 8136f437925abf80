import { parseUserName } from "@trellis/protocol";
import { Type } from "typebox";
import { Compile } from "typebox/compile";

/** One socket at the broker. */
export interface Socket {
  serverId: string;
  cid: number;
  /** When the socket was accepted, by that server's clock, in ms; orders the sockets of one connection. */
  startedAt: number;
}

/** A socket of one of our connections. */
export interface ConnectionSocket extends Socket {
  connection: string;
  digest: string;
}

const Event = Compile(
  Type.Object({
    server: Type.Object({ id: Type.String() }),
    client: Type.Object({
      id: Type.Integer(),
      user: Type.Optional(Type.String()),
      start: Type.Optional(Type.String()),
    }),
    reason: Type.Optional(Type.String()),
  }),
);

const ListingBody = Compile(
  Type.Object({
    data: Type.Object({
      server_id: Type.String(),
      num_connections: Type.Integer(),
      total: Type.Integer(),
      connections: Type.Union([
        Type.Null(),
        Type.Array(
          Type.Object({
            cid: Type.Integer(),
            authorized_user: Type.Optional(Type.String()),
            start: Type.Optional(Type.String()),
          }),
        ),
      ]),
    }),
  }),
);

/** A page of one server's sockets; `total` counts all of them, `seen` those of this page, ours or not. */
export interface Listing {
  serverId: string;
  seen: number;
  total: number;
  sockets: readonly ConnectionSocket[];
}

/** Reads a CONNECT or DISCONNECT event; `undefined` for sockets that are not a Trellis connection's. */
export function readSocketEvent(
  body: unknown,
): (ConnectionSocket & { reason: string | undefined }) | undefined {
  if (!Event.Check(body)) return undefined;
  const { server, client, reason } = body;
  const socket = toSocket({ serverId: server.id, cid: client.id, user: client.user, start: client.start });
  return socket === undefined ? undefined : { ...socket, reason };
}

/** Reads one server's answer about its connections. */
export function readListing(body: unknown): Listing | undefined {
  if (!ListingBody.Check(body)) return undefined;
  const { server_id: serverId, total, connections } = body.data;
  const sockets = (connections ?? []).flatMap((row) => {
    const socket = toSocket({ serverId, cid: row.cid, user: row.authorized_user, start: row.start });
    return socket === undefined ? [] : [socket];
  });
  return { serverId, seen: connections?.length ?? 0, total, sockets };
}

function toSocket(row: {
  serverId: string;
  cid: number;
  user: string | undefined;
  start: string | undefined;
}): ConnectionSocket | undefined {
  const named = row.user === undefined ? undefined : parseUserName(row.user);
  if (named === undefined) return undefined;
  const startedAt = row.start === undefined ? 0 : Date.parse(row.start);
  const { serverId, cid } = row;
  return { serverId, cid, startedAt: Number.isNaN(startedAt) ? 0 : startedAt, ...named };
}

import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import type { Context, Hono } from "hono";

export interface HttpListener {
  host: string;
  port: number;
  /** Ends the listener and every connection of it. */
  stop(): Promise<void>;
}

/** Reserves the port first, so that the address is known before there is an application to serve. */
export async function listen(app: Hono, host: string, port: number): Promise<HttpListener> {
  const server = createAdaptorServer({ fetch: app.fetch }) as Server;
  server.headersTimeout = 10_000;
  server.requestTimeout = 30_000;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
  const address = server.address() as AddressInfo;
  return {
    host,
    port: address.port,
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** The address of the peer at the other end of the socket, whatever headers say. */
export function peerAddress(context: Context): string {
  const { incoming } = context.env as { incoming?: { socket?: { remoteAddress?: string } } };
  return incoming?.socket?.remoteAddress ?? "unknown";
}

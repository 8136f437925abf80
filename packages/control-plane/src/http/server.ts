import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createAdaptorServer, type Http2Bindings, type HttpBindings } from "@hono/node-server";
import type { Context, Hono } from "hono";

export interface HttpListener {
  host: string;
  port: number;
  /** Gives requests to an application, or to nobody. */
  serve(app: Hono | undefined): void;
  /** Ends the listener and every connection of it. */
  stop(): Promise<void>;
}

/**
 * Listens before there is an application: the broker's configuration names our origins, and those hold the port.
 * Until {@link HttpListener.serve}, and after it was taken away again, requests are answered by 503.
 */
export async function listen(host: string, port: number): Promise<HttpListener> {
  let app: Hono | undefined;
  const fetch = (request: Request, env: HttpBindings | Http2Bindings) =>
    app?.fetch(request, env) ?? new Response(null, { status: 503 });
  const server = createAdaptorServer({ fetch }) as Server;
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
    serve: (next) => {
      app = next;
    },
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

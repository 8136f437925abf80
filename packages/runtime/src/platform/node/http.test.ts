import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { postByNode } from "./http.ts";

const body = new TextEncoder().encode('{"ä":1}');

async function serve(listener: RequestListener) {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: new URL(`http://127.0.0.1:${port}/path`),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

const post = (url: URL, signal = AbortSignal.timeout(10_000)) =>
  postByNode(url, { body, headers: { some: "header" }, signal, maxBytes: 100 });

it("posts the body with its length, and gives status and text", async () => {
  await using server = await serve((request, response) => {
    const { method = "", url = "", headers } = request;
    request.setEncoding("utf8").once("data", (text: string) => {
      const known = [method, url, headers["some"], headers["content-length"], text];
      response.writeHead(403).end(known.join(" "));
    });
  });
  expect(await post(server.url)).toEqual({ status: 403, text: 'POST /path header 8 {"ä":1}' });
});

it("follows no redirect: proofs are for one place", async () => {
  let asked = 0;
  await using server = await serve((_, response) => {
    asked += 1;
    response.writeHead(307, { location: "/elsewhere" }).end();
  });
  expect(await post(server.url)).toEqual({ status: 307, text: "" });
  expect(asked).toBe(1);
});

it("stops reading an answer that is too long, one that is cut, and one that never ends", async () => {
  await using long = await serve((_, response) => void response.end("x".repeat(101)));
  await expect(post(long.url)).rejects.toThrow("longer than 100 bytes");
  await using cut = await serve((_, response) => {
    response.writeHead(200, { "content-length": "50" }).write("x");
    response.destroy();
  });
  await expect(post(cut.url)).rejects.toThrow();
  await using endless = await serve((_, response) => void response.writeHead(200).write("x"));
  const ended = new AbortController();
  const answer = post(endless.url, ended.signal);
  setImmediate(() => ended.abort(new Error("enough")));
  await expect(answer).rejects.toThrow("enough");
});

it("rejects when nobody listens", async () => {
  const server = await serve(() => {});
  await server[Symbol.asyncDispose]();
  await expect(post(server.url)).rejects.toThrow("ECONNREFUSED");
});

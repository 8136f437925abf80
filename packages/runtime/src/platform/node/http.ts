import type { ClientRequest, IncomingMessage } from "node:http";
import type { HttpAnswer, HttpPost } from "../platform.ts";

/**
 * Posts by Node's own client: `fetch` would load a second one, and 15 MiB with it, for a request or two an hour. Follows
 * no redirect. Rejects when nobody answers, when the answer is longer than allowed, and with the signal's reason.
 */
export async function postByNode(
  url: URL,
  { body, headers, signal, maxBytes }: HttpPost,
): Promise<HttpAnswer> {
  signal.throwIfAborted();
  const { request } = await (url.protocol === "https:" ? import("node:https") : import("node:http"));
  const sent: ClientRequest = request(url, {
    method: "POST",
    headers: { ...headers, "content-length": String(body.length) },
    // The next exchange is half an hour away: nobody is to keep a socket for it.
    agent: false,
    signal,
  });
  try {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      sent.once("response", resolve);
      sent.once("error", reject);
      sent.end(body);
    });
    const parts: Buffer[] = [];
    let length = 0;
    for await (const part of answer as AsyncIterable<Buffer>) {
      length += part.length;
      if (length > maxBytes) throw new RangeError(`The answer is longer than ${maxBytes} bytes.`);
      parts.push(part);
    }
    return { status: answer.statusCode ?? 0, text: Buffer.concat(parts).toString("utf8") };
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    sent.destroy();
  }
}

import { type StoreBinding, storeWatchPrefix } from "@trellis/protocol";
import type { Streams, TestLink } from "../jetstream/streams.test-kit.ts";
import { StreamObjectStore } from "./object-store.ts";

let made = 0;

/** A store of its own on the server, as the control plane would make it. */
export async function makeStore(
  streams: Streams,
  limits: { maxObjectBytes?: number; maxTotalBytes?: number } = {},
): Promise<{ name: string; stream: string; open: (link: TestLink) => StreamObjectStore }> {
  made += 1;
  const name = `s${process.pid}-${made}`;
  const { maxObjectBytes, maxTotalBytes } = limits;
  await streams.addStore(name, maxTotalBytes === undefined ? {} : { max_bytes: maxTotalBytes });
  const binding: StoreBinding = {
    name,
    ttlMs: null,
    maxObjectBytes: maxObjectBytes ?? null,
    maxTotalBytes: maxTotalBytes ?? null,
    watch: storeWatchPrefix(name),
  };
  return {
    name,
    stream: `OBJ_${name}`,
    open: (link) => new StreamObjectStore({ link, requests: link.requests, binding, timeoutMs: 5_000 }),
  };
}

/** Bytes that differ from place to place. */
export function pattern(length: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let at = 0, value = seed; at < length; at += 1) {
    value = (value * 1_103_515_245 + 12_345) & 0x7fffffff;
    bytes[at] = value >> 16;
  }
  return bytes;
}

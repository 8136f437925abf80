import { connect } from "@nats-io/transport-node";
import { startNats } from "@trellis/testing";
import { expect, it } from "vitest";
import { silentLogger } from "../logging/logger.ts";
import { Broker } from "./broker.ts";
import { encodeHeaders } from "./message-headers.ts";

const events = { onDown() {}, onDialing() {}, onRefused() {}, onUp() {}, onClosed() {} };
const text = (value: string) => new TextEncoder().encode(value);

it("publishes in order what a turn hands over, in one go, and before it closes", async () => {
  await using nats = await startNats();
  const listener = await connect({ servers: nats.url });
  const heard: string[] = [];
  listener.subscribe("a.*", {
    callback: (_, message) => void heard.push(`${message.subject} ${message.string()}`),
  });
  await listener.flush();
  const client = await connect({ servers: nats.url });
  const broker = new Broker(client, events, silentLogger);
  const before = client.stats().outMsgs;
  expect(broker.publish("a.1", text("one"))).toBe(true);
  await Promise.resolve();
  expect(broker.publish("a.2", text("two"))).toBe(true);
  expect(client.stats().outMsgs).toBe(before);
  await new Promise((resolve) => setImmediate(resolve));
  expect(client.stats().outMsgs).toBe(before + 2);
  broker.publish("a.3", text("three"));
  await broker.flush();
  broker.publish("a.4", text("four"));
  await broker.close();
  expect(broker.publish("a.5", text("five"))).toBe(false);
  await listener.flush();
  expect(heard).toEqual(["a.1 one", "a.2 two", "a.3 three", "a.4 four"]);
  await listener.close();
});

it("says at once that a message is too long, headers included", async () => {
  await using nats = await startNats({ config: "max_payload: 1024" });
  const broker = new Broker(await connect({ servers: nats.url }), events, silentLogger);
  expect(broker.publish("a", new Uint8Array(1_024))).toBe(true);
  expect(broker.publish("a", new Uint8Array(1_025))).toBe(false);
  const headers = encodeHeaders({ some: "x".repeat(100) });
  expect(broker.publishWith("a", new Uint8Array(1_000), { headers })).toBe(false);
  expect(broker.publishWith("a", new Uint8Array(800), { headers })).toBe(true);
  await broker.close();
});

it("takes no header with a line break: what follows it would be another header", () => {
  expect(() => encodeHeaders({ some: "a\r\nother: b" })).toThrow(/line break/);
  expect(encodeHeaders({ some: "ä" })).toEqual(text("NATS/1.0\r\nsome: ä\r\n\r\n"));
});

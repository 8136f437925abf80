import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { signedHeaders, verdict } from "../../../../conformance/events/recipes.ts";
import { portablePort as port } from "../port/portable.ts";
import { eventFilter } from "../subjects/subject.ts";
import { readDeadLetter, writeDeadLetter } from "./dead-letter.ts";
import { EVENT_HEADERS } from "./event-headers.ts";
import { EVENT_LABEL, eventLeaf } from "./event-leaf.ts";
import { eventPlace, MAX_EVENT_PARAM, readEventSubject } from "./event-params.ts";
import { readEventProof } from "./event-proof.ts";
import {
  EVENT_NODE_LABEL,
  MAX_MERKLE_LEAVES,
  merklePath,
  merklePathLength,
  merkleRoot,
  merkleTree,
} from "./merkle.ts";

const api = "acme.orders@v1";
const seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
const now = 1_764_540_000_000;

const anyText = fc.string({ unit: "binary", maxLength: 40 });
const anyParam = fc.oneof(anyText, fc.boolean(), fc.double(), fc.integer(), fc.constantFrom(0, -0, ""));

describe("subjects of events", () => {
  it("C17: every value is one token that reads back, or is refused by name", () => {
    fc.assert(
      fc.property(anyParam, anyParam, (a, b) => {
        const place = eventPlace({ api, name: "Order.Placed", params: ["a", "b"] }, { a, b });
        if (!place.ok) {
          for (const { path } of place.issues) expect(["/a", "/b"]).toContain(path);
          return;
        }
        const texts = [a, b].map((value) => (Object.is(value, -0) ? "0" : String(value)));
        expect(readEventSubject(place.subject)).toEqual({ api, action: "Order.Placed", params: texts });
        expect(place.subject).toMatch(/^[A-Za-z0-9@_=.-]+$/);
        expect(eventFilter({ api, action: "Order.Placed", params: texts })).toBe(place.subject);
      }),
    );
  });

  it("C17: two values have one token only when their text is one", () => {
    fc.assert(
      fc.property(anyText, anyText, (a, b) => {
        const [first, second] = [a, b].map((p) => eventPlace({ api, name: "E", params: ["p"] }, { p }));
        if (first?.ok !== true || second?.ok !== true) return;
        expect(first.subject === second.subject).toBe(a === b);
      }),
    );
  });

  it("C17: reading is total", () => {
    fc.assert(fc.property(anyText, (text) => void readEventSubject(`events.v1.${text}`)));
  });

  it("C82: refuses a parameter that is too long", () => {
    const place = eventPlace({ api, name: "E", params: ["p"] }, { p: "x".repeat(MAX_EVENT_PARAM + 1) });
    expect(place).toMatchObject({ ok: false, issues: [{ path: "/p" }] });
  });
});

describe("the tree", () => {
  const leavesOf = (size: number) => Array.from({ length: size }, (_, index) => port.sha256Text(`${index}`));

  it("proves every leaf of every size, and no other in its place", () => {
    for (let size = 1; size <= MAX_MERKLE_LEAVES; size += 1) {
      const leaves = leavesOf(size);
      const tree = merkleTree(port, leaves);
      const { root } = tree;
      leaves.forEach((leaf, index) => {
        const path = merklePath(tree, index);
        const hashes = path === "" ? [] : path.split(".");
        expect(hashes).toHaveLength(merklePathLength(size, index));
        expect(merkleRoot(port, leaf, { size, index, path })).toBe(root);
        expect(merkleRoot(port, port.sha256Text(root), { size, index, path })).not.toBe(root);
        expect(merkleRoot(port, leaf, { size, index, path: [...hashes, root].join(".") })).toBeUndefined();
        if (hashes.length > 0)
          expect(merkleRoot(port, leaf, { size, index, path: hashes.slice(1).join(".") })).toBeUndefined();
      });
    }
  });

  it("has no leaf that passes for an inner node: their texts begin otherwise", () => {
    const [left = "", right = ""] = leavesOf(2);
    const { root } = merkleTree(port, [left, right]);
    const facts = { time: 0, requestId: "", traceparent: "", tracestate: "" };
    // The content that would make the leaf's text that of the node, if it stood behind the same label.
    expect(eventLeaf(port, `${left}${right}`, facts)).not.toBe(root);
    expect(port.sha256Text(`${EVENT_NODE_LABEL}\n${left}${right}`)).toBe(root);
    expect(EVENT_LABEL).not.toBe(EVENT_NODE_LABEL);
  });

  it("takes 1 to 64 leaves", () => {
    expect(() => merkleTree(port, [])).toThrow(RangeError);
    expect(() => merkleTree(port, leavesOf(MAX_MERKLE_LEAVES + 1))).toThrow(RangeError);
  });
});

const signed = fc
  .record({
    count: fc.integer({ min: 1, max: 9 }),
    chosen: fc.nat(),
    payload: fc.json(),
    param: fc.string({ unit: "grapheme-ascii", minLength: 1, maxLength: 8 }),
    id: fc.stringMatching(/^[\x21-\x7e]{1,20}$/),
    traced: fc.boolean(),
  })
  .map(({ count, chosen, payload, param, id, traced }) => {
    const place = eventPlace({ api, name: "Order.Placed", params: ["p"] }, { p: param });
    if (!place.ok) throw new Error("a text was refused");
    const facts = {
      time: now,
      requestId: traced ? "0af7651916cd43dd8448eb211c80319c" : "",
      traceparent: traced ? "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" : "",
      tracestate: traced ? "vendor=1" : "",
    };
    const { subject } = place;
    const events = Array.from({ length: count }, (_, index) => ({
      subject,
      id: `${id}${index}`,
      payload,
      facts,
    }));
    const headers = signedHeaders(port, { seed, deployment: "dep1", signedAt: now, events });
    const index = chosen % count;
    const common = {
      deployment: "dep1",
      publishes: ["Order.Placed"],
      notBefore: now - 1,
      expiresAt: now + 1,
    };
    return { ...common, seed, subject, payload, storedAt: now, headers: headers[index] ?? {} };
  });

/** The text with one character changed for another of the same kind. */
function changed(text: string, at: number): string {
  if (text === "") return "x";
  const index = at % text.length;
  const next = text[index] === "A" ? "B" : "A";
  return text.slice(0, index) + next + text.slice(index + 1);
}

describe("a signed event", () => {
  it("verifies alone, whatever it was signed together with", () => {
    fc.assert(
      fc.property(signed, (input) => {
        expect(verdict(port, input)).toBe("accepted");
      }),
      { numRuns: 40 },
    );
  });

  it("fails when any part of it is changed", () => {
    const names = Object.values(EVENT_HEADERS);
    fc.assert(
      fc.property(signed, fc.constantFrom(...names, "payload", "subject"), fc.nat(), (input, part, at) => {
        if (part === "payload") {
          expect(verdict(port, { ...input, payload: changed(input.payload, at) })).not.toBe("accepted");
        } else if (part === "subject") {
          expect(verdict(port, { ...input, subject: changed(input.subject, at) })).not.toBe("accepted");
        } else {
          const headers = { ...input.headers, [part]: changed(input.headers[part] ?? "", at) };
          expect(verdict(port, { ...input, headers })).not.toBe("accepted");
        }
      }),
      { numRuns: 150 },
    );
  });

  it("reads any proof without throwing", () => {
    fc.assert(fc.property(anyText, (text) => void readEventProof(text)));
  });
});

it("a dead letter's headers are lines of ASCII and read back", () => {
  const number = fc.nat();
  const letters = fc.record({
    reason: fc.constantFrom("exhausted", "unsigned", "schema_mismatch"),
    error: fc.record({
      type: fc.constant("Error"),
      message: fc.string({ unit: "grapheme", maxLength: 200 }),
    }),
    attempts: number,
    subject: fc.constant("events.v1.acme_orders@v1.E"),
    storedAt: number,
    sequence: number,
    at: number,
  });
  fc.assert(
    fc.property(letters, (letter) => {
      const headers = writeDeadLetter(letter);
      for (const value of Object.values(headers)) expect(value).toMatch(/^[\x20-\x7e]*$/);
      expect(readDeadLetter((name) => headers[name] ?? "")).toEqual(letter);
    }),
  );
});

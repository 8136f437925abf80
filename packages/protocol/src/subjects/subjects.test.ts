import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { noticeSubject, revocationNoticeId } from "./control-account.ts";
import {
  controlSubject,
  eventFilter,
  eventSubject,
  healthSubject,
  replySubject,
  rpcSubject,
} from "./subject.ts";
import {
  actionOfToken,
  actionToken,
  apiOfToken,
  apiToken,
  decodeToken,
  encodeToken,
  idToken,
  isEncodable,
  isToken,
} from "./token.ts";

const hostile = [
  "",
  ".",
  "a.b",
  "*",
  ">",
  "a b",
  "x\r\nPUB evil 0\r\n\r\n",
  "\0",
  "a".repeat(4_096),
  "%2E",
  "é",
  "=",
  "=YQ",
];
const order = { api: "acme.orders@v1", action: "Order.Placed" };

describe("tokens of text", () => {
  it("are one token, whatever the text", () => {
    for (const text of hostile) {
      const token = encodeToken(text);
      expect(token).toMatch(/^[A-Za-z0-9=_-]+$/);
      expect(decodeToken(token)).toBe(text);
    }
  });

  it("come back, and no two texts share one", () => {
    const any = fc.string({ unit: "binary", maxLength: 30 });
    fc.assert(
      fc.property(any, any, (a, b) => {
        expect(encodeToken(a)).toMatch(/^[A-Za-z0-9=_-]+$/);
        expect(decodeToken(encodeToken(a))).toBe(a);
        expect(encodeToken(a) === encodeToken(b)).toBe(a === b);
        expect(idToken(a) === idToken(b)).toBe(a === b);
      }),
      { numRuns: 1_000 },
    );
  });

  it("are read only in the one spelling", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^=[\w-]*$/)), (token) => {
        const text = decodeToken(token);
        if (text !== undefined) expect(encodeToken(text)).toBe(token);
      }),
      { numRuns: 2_000 },
    );
  });

  it("refuse a lone surrogate, which has no UTF-8", () => {
    expect(isEncodable("\ud800")).toBe(false);
    expect(isEncodable("a.b")).toBe(true);
    expect(() => encodeToken("\ud800")).toThrow(TypeError);
  });
});

describe("names in subjects", () => {
  it("turn dots into one token and back", () => {
    expect(apiOfToken(apiToken("acme.orders@v1"))).toBe("acme.orders@v1");
    expect(actionOfToken(actionToken("Evidence.Files.List"))).toBe("Evidence.Files.List");
  });

  it("refuse what is no name", () => {
    for (const id of [
      "",
      "acme",
      "acme@v1",
      "acme.orders",
      "acme_x.orders@v1",
      "Acme.orders@v1",
      "a.b@v0",
      "a.b@v1.>",
      "a.*@v1",
    ]) {
      expect(() => apiToken(id)).toThrow(TypeError);
    }
    for (const name of [
      "",
      ".",
      "Order.",
      "Order..Placed",
      "Order_Placed",
      "Order.*",
      "1Order",
      "Order Placed",
    ]) {
      expect(() => actionToken(name)).toThrow(TypeError);
    }
    for (const token of ["", "acme.orders@v1", "x", "_x"]) expect(apiOfToken(token)).toBeUndefined();
    for (const token of ["", "Order.Placed", "_", "Order__Placed"])
      expect(actionOfToken(token)).toBeUndefined();
  });
});

describe("subjects", () => {
  it("take no deployment, connection or number that is more than a token", () => {
    for (const text of hostile.filter((candidate) => !isToken(candidate))) {
      expect(() => rpcSubject({ ...order, deployment: text })).toThrow(TypeError);
      expect(() => controlSubject("dep1", text)).toThrow(TypeError);
      expect(() => replySubject("con1", text)).toThrow(TypeError);
      expect(() => healthSubject({ kind: text, deployment: "dep1", connection: "con1" })).toThrow(TypeError);
    }
  });

  it("name a deployment that is a token as it stands", () => {
    expect(rpcSubject({ ...order, deployment: "dep1" })).toBe("rpc.v1.acme_orders@v1.dep1.Order_Placed");
    expect(controlSubject("dep1", "all")).toBe("ctl.v1.dep1.all");
  });

  it("keep the number of tokens of an event, whatever its parameters", () => {
    for (const text of hostile) {
      const subject = eventSubject({ ...order, params: ["a", text] });
      expect(subject.split(".")).toHaveLength(6);
      expect(subject).not.toMatch(/[\s*>\0]/);
    }
  });

  it("filter by the literal value, and by any only when asked", () => {
    expect(eventFilter({ ...order, params: ["*", undefined] })).toBe(
      "events.v1.acme_orders@v1.Order_Placed.=Kg.*",
    );
    // A subscriber for tenant A never gets tenant "A.B".
    const [a, ab] = ["A", "A.B"].map((tenant) => eventSubject({ ...order, params: [tenant] }));
    expect(eventFilter({ ...order, params: ["A"] })).toBe(a);
    expect(ab).not.toBe(a);
    expect(ab?.startsWith(`${a}.`)).toBe(false);
  });

  it("keep revocations of different subjects apart", () => {
    const ids = [
      { kind: "connection", id: "x" },
      { kind: "instance", id: "x" },
      { kind: "principal", id: "user:x" },
      { kind: "principal", id: "a.b" },
      { kind: "principal", id: "=YS5i" },
    ];
    const subjects = ids.map((subject) => noticeSubject("revocation", revocationNoticeId(subject)));
    expect(new Set(subjects).size).toBe(ids.length);
    expect(subjects.every((subject) => subject.split(".").length === 4)).toBe(true);
  });
});

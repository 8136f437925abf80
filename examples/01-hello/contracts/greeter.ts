import { defineApi, defineApp, defineError, defineService, rpc, use } from "@trellis/contract";
import { Type } from "typebox";
import { translator } from "./translator.ts";

/** An expected failure: part of the contract, the same class on both sides. */
export const NameTaboo = defineError("NameTaboo", {
  data: Type.Object({ name: Type.String(), suggestion: Type.String() }),
  message: ({ name }) => `Nobody here greets ${name}`,
});

export const greeter = defineApi("hello.greeter@v1", {
  title: "Greeter",
  rpc: {
    "Greeter.Hello": rpc({
      title: "Greets somebody by name",
      input: Type.Object({ name: Type.String({ minLength: 1, maxLength: 80 }) }),
      output: Type.Object({ text: Type.String() }),
      errors: [NameTaboo],
      idempotent: true,
    }),
    "Greeter.Welcome": rpc({
      title: "Greets in another language; asks the translator for it",
      input: Type.Object({ name: Type.String({ minLength: 1 }), language: Type.String() }),
      output: Type.Object({ text: Type.String(), translatedBy: Type.String() }),
    }),
    "Greeter.Count": rpc({
      title: "Counts slowly, and stops as soon as nobody waits for it any more",
      input: Type.Object({ to: Type.Integer({ minimum: 1, maximum: 1000 }) }),
      output: Type.Object({ counted: Type.Integer() }),
    }),
  },
});

export const greeterService = defineService("hello.greeter-service", {
  title: "Greeter service",
  implements: [greeter],
  uses: [use(translator, { rpc: ["Words.Translate"] })],
});

export const helloApp = defineApp("hello.app", { title: "Hello app", uses: [use(greeter)] });

import { defineApi, defineError, defineService, rpc } from "@trellis/contract";
import { Type } from "typebox";

export const UnknownLanguage = defineError("UnknownLanguage", {
  data: Type.Object({ language: Type.String(), known: Type.Array(Type.String()) }),
});

export const translator = defineApi("hello.translator@v1", {
  title: "Translator",
  rpc: {
    "Words.Translate": rpc({
      title: "Translates a word of greeting",
      input: Type.Object({ word: Type.Literal("hello"), language: Type.String() }),
      output: Type.Object({ word: Type.String() }),
      errors: [UnknownLanguage],
      idempotent: true,
    }),
  },
});

export const translatorService = defineService("hello.translator-service", {
  title: "Translator service",
  implements: [translator],
});

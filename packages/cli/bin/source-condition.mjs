// Module hooks: what `node --conditions=@trellis/source` does, for a process that is running already.
const condition = "@trellis/source";

export function resolve(specifier, context, nextResolve) {
  const { conditions } = context;
  if (conditions.includes(condition)) return nextResolve(specifier, context);
  return nextResolve(specifier, { ...context, conditions: [condition, ...conditions] });
}

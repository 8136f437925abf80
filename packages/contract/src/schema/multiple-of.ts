/**
 * True when `value` is a multiple of `divisor` as people mean it: exactly for whole numbers, else when it is the
 * double nearest to a decimal multiple, give or take one unit in the last place. So 143.48 is a multiple of 0.01,
 * and 143.485 is not. Where doubles lie further apart than the divisor, every one of them passes.
 */
export function isMultipleOf(value: number, divisor: number): boolean {
  if (Number.isInteger(value) && Number.isInteger(divisor)) return value % divisor === 0;
  const quotient = value / divisor;
  if (!Number.isFinite(quotient)) return true;
  return Math.abs(Math.round(quotient) * divisor - value) <= 2 * Number.EPSILON * Math.abs(value);
}

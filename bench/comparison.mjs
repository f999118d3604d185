/** @typedef {import('./rows.mjs').Comparison} Comparison */

/**
 * @param {string} what
 * @param {string} unit
 * @param {number | null} value
 * @param {{ bar: number, aim: number | null, sense?: Comparison['sense'] }} limits
 * @returns {Comparison}
 */
export function plain(what, unit, value, { bar, aim, sense = 'at most' }) {
  return { what, unit, value, against: null, baseline: null, bar, aim, sense };
}

/** @param {number | null} value @param {number | null} other */
export function minus(value, other) {
  return value === null || other === null ? null : value - other;
}

/** @typedef {import('./rows.mjs').Comparison} Comparison */
/** @typedef {'aim' | 'bar' | 'miss' | 'unknown'} Verdict `aim`: it meets the bar, and the aim if there is one */

/**
 * @typedef {object} Judged
 * @property {number | null} ratio null: there is no baseline, or one of the two was not measured
 * @property {Verdict} verdict
 * @property {number | null} missedBy how many times worse than the bar; null: it is not missed, or the bar is 0
 */

/** @param {Comparison} comparison @returns {Judged} */
export function judge({ value, against, baseline, bar, aim, sense }) {
  const ratio = against !== null && value !== null && baseline !== null && baseline > 0 ? value / baseline : null;
  const shown = against === null ? value : ratio;
  if (shown === null) return { ratio, verdict: 'unknown', missedBy: null };
  const meets = (/** @type {number} */ limit) => (sense === 'at most' ? shown <= limit : shown >= limit);
  if (meets(bar)) return { ratio, verdict: aim === null || meets(aim) ? 'aim' : 'bar', missedBy: null };
  const missedBy = sense === 'at most' ? shown / bar : bar / shown;
  return { ratio, verdict: 'miss', missedBy: Number.isFinite(missedBy) ? missedBy : null };
}

/** A row is as good as the worst of its figures. @param {readonly Verdict[]} verdicts @returns {Verdict} */
export function worst(verdicts) {
  const order = /** @type {const} */ (['unknown', 'miss', 'bar', 'aim']);
  return order.find((verdict) => verdicts.includes(verdict)) ?? 'unknown';
}

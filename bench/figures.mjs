/**
 * The value in the middle; of an even number the mean of the two in the middle.
 *
 * @param {readonly number[]} values in any order
 * @returns {number | null} null: there is none
 */
export function median(values) {
  const sorted = [...values].sort((one, other) => one - other);
  const upper = sorted[sorted.length >> 1];
  if (upper === undefined) return null;
  const lower = sorted[(sorted.length - 1) >> 1] ?? upper;
  return (lower + upper) / 2;
}

/**
 * The smallest value that at least this part of all values does not pass.
 *
 * @param {readonly number[]} values in any order
 * @param {number} part from 0 to 1
 * @returns {number | null} null: there is none
 */
export function quantile(values, part) {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? null;
}

/**
 * The slope of the line through points by least squares.
 *
 * @param {readonly { x: number, y: number }[]} points
 * @returns {number | null} null: fewer than two different x
 */
export function slopeOf(points) {
  const mean = (/** @type {'x' | 'y'} */ axis) => points.reduce((sum, point) => sum + point[axis], 0) / points.length;
  const [meanX, meanY] = [mean('x'), mean('y')];
  const spread = points.reduce((sum, { x }) => sum + (x - meanX) ** 2, 0);
  return spread > 0 ? points.reduce((sum, { x, y }) => sum + (x - meanX) * (y - meanY), 0) / spread : null;
}

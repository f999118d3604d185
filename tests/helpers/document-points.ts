import type { FailPoint } from '../../shared/fail-points.ts';

/** Of a start that fetches documents. */
export const documentPoints = ['document.kept'] as const satisfies readonly FailPoint[];

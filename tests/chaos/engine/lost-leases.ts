import { z } from 'zod';
import { jsonIn } from '../../../shared/json-in.ts';

const lostLease = z.looseObject({ lease: z.literal('lost'), kind: z.string(), message_id: z.string(), delivery: z.number() });
export type LostLease = z.infer<typeof lostLease>;

/** What a line of a worker's log says about a lease that it lost. @returns null for any other line */
export function lostLeaseIn(line: string): LostLease | null {
  return lostLease.safeParse(jsonIn(line)).data ?? null;
}

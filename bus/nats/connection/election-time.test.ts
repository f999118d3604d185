import { expect, it } from 'vitest';
import { electionMsOf } from './election-time.ts';

it('DESIGN 3: routers are not ready in a cluster while their streams are looked up, and other processes are, for the time of an election', () => {
  expect(['router-gateway', 'router-worker', 'router'].map((user) => electionMsOf(user as 'router'))).toEqual([0, 0, 0]);
  // Without users at the broker a process does not know what it is.
  expect(electionMsOf(null)).toBe(0);
  expect(['agent-gateway', 'actor-host', 'effect-worker', 'agent'].map((user) => electionMsOf(user as 'agent'))).toEqual([10_000, 10_000, 10_000, 10_000]);
});

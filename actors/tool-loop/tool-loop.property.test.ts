import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CheckedLoop } from './test-support/checked-loop.ts';
import { joined, type LoopMachine, loopUsers, usersWithTools } from './test-support/users.ts';
import type { LoopReply, ToolOutcome } from './types.ts';

/** Thousands of transitions, possibly on a busy machine. */
const TIMEOUT_MS = 240_000;

/** What happens to a loop; its effect is one that it awaits, or any other. */
interface Happening {
  what: 'reply' | 'settled' | 'listed' | 'failed' | 'joined' | 'stray';
  variant: number;
  calls: number;
}

const happening: fc.Arbitrary<Happening> = fc.record({
  what: fc.oneof(
    { weight: 20, arbitrary: fc.constantFrom('reply' as const, 'settled' as const, 'listed' as const) },
    { weight: 3, arbitrary: fc.constantFrom('joined' as const, 'stray' as const) },
    { weight: 1, arbitrary: fc.constant('failed' as const) },
  ),
  variant: fc.nat(19),
  calls: fc.nat(3),
});
const input = fc.record({ maxIterations: fc.integer({ min: 1, max: 5 }), servers: fc.constantFrom([], ['crm'], ['crm', 'erp']) });

describe('any loop', () => {
  it.each(loopUsers)(
    'awaits nothing once it has ended, and asks only when nothing else is awaited: $name',
    (user) => {
      fc.assert(
        fc.property(input, fc.array(happening, { maxLength: 40, size: 'max' }), (given, happenings) => {
          const loop = new CheckedLoop(user, given);
          for (const one of happenings) meet(loop, user, one);
          if (!loop.isDone) loop.meet(user.deadline);
          loop.requireEnded();
          expect(loop.meet(user.deadline)).toEqual([]);
        }),
        { numRuns: 100 },
      );
    },
    TIMEOUT_MS,
  );

  it(
    'does the same for each of its users, until their limits or their own events part them',
    () => {
      let steps = 0;
      fc.assert(
        fc.property(input, fc.array(happening, { maxLength: 40, size: 'max' }), (given, happenings) => {
          const loops = usersWithTools.map((user) => new CheckedLoop(user, given));
          let iterations = 1;
          for (const one of happenings) {
            if (one.what === 'joined') continue;
            const isIteration = one.what === 'reply' && loops[0]?.state === 'thinking';
            if (isIteration && iterations === given.maxIterations) return;
            const [first, ...others] = loops.map((loop) => meet(loop, loop.user, one));
            for (const other of others) expect(other).toEqual(first);
            if (isIteration) iterations += 1;
            steps += 1;
          }
        }),
        { numRuns: 200, seed: 11 },
      );

      expect(steps).toBeGreaterThan(1_000);
    },
    TIMEOUT_MS,
  );
});

function meet(loop: CheckedLoop, user: LoopMachine, { what, variant, calls }: Happening): string[] | null {
  const listId = loop.awaited('tool-list')[0];
  const callId = loop.awaited('router-call')[0];
  switch (what) {
    case 'reply':
      return callId === undefined ? [] : loop.reply(replyOf(variant, calls), callId);
    case 'settled':
      return loop.settle(variant, outcomeOf(variant));
    case 'listed':
      return loop.meet({
        type: 'tools.listed',
        callId: listId ?? `${user.actorId}-98`,
        ...{ lists: variant < 2 ? {} : { crm: 'h1', erp: 'h2' }, unavailable: {}, timedOut: false },
      });
    case 'failed':
      return loop.meet({
        type: 'call.failed',
        callId: callId ?? `${user.actorId}-97`,
        ...{ failure: { code: 'router.no_provider', message: '', details: {} } },
      });
    case 'joined':
      return user.name in joined ? loop.meet(joined[user.name] ?? user.deadline) : [];
    case 'stray':
      return loop.reply({ type: 'end' }, `${user.actorId}-0`);
  }
}

function replyOf(variant: number, calls: number): LoopReply {
  if (variant < 1) return { type: 'end' };
  if (variant < 4) return { type: 'unusable', finishReason: 'stop' };
  if (variant < 7) return { type: 'again', messages: [{ role: 'user', content: 'Call a function.' }] };
  const order = Array.from({ length: calls }, (_, index) => ({ toolCallId: `c${index}`, toolId: `crm:tool${index}` }));
  return { type: 'tools', messages: [{ role: 'user', content: 'calls' }], calls: order.map((call) => ({ ...call, listHash: 'h1' })), order };
}

function outcomeOf(variant: number): ToolOutcome {
  if (variant < 1) return { type: 'failed', reason: 'unreachable', message: '' };
  if (variant < 5) return { type: 'failed', reason: 'timeout', message: '' };
  return { type: 'result', data: variant, metadata: {}, isError: variant % 2 === 0 };
}

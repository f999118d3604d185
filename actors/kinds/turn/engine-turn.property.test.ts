import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { actorFields } from '#bus/messages/actor-fields.ts';
import { testPolicy } from '../../engine/policies/test-support/test-policy.ts';
import { header } from '../../test-support/driven-session.ts';
import { EngineSession } from '../../test-support/engine-session.ts';
import { testEngineDocuments } from '../../test-support/test-engine-documents.ts';

const POLICIES = ['a', 'b', 'c', 'd', 'e'];
const TURN = /^user_message acknowledged processing\/matching( user_message)*( typing)?( user_message)*( assistant_message| cancelled| error) ready$/;

const step = fc.oneof(
  fc.record({ kind: fc.constant('post' as const), pauseMs: fc.constantFrom(0, 100, 5_000) }),
  fc.record({ kind: fc.constantFrom('answer' as const, 'malformed' as const, 'fail' as const, 'repeat' as const, 'deadline' as const), which: fc.nat(20) }),
);

describe('a turn of an agent with policies', () => {
  it('DESIGN 5: rules 84 to 87, 100 to 105: keeps the order of statuses, and replies with each policy judged once and one check, whatever comes in whatever order', () => {
    let replies = 0;
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const session = new EngineSession(
          testEngineDocuments({ policies: POLICIES.map((id) => testPolicy(id, { criticality: id === 'a' ? 'high' : 'medium' })), batchSize: 2 }),
        );
        const sent: string[] = [];
        for (const each of steps) play(session, each, sent);
        session.finish(['a']);
        expectWholeTurns(session);
        replies += expectJudgedOnce(session);
      }),
      { numRuns: 200 },
    );
    expect(replies).toBeGreaterThan(100);
  });
});

type Step = { kind: 'post'; pauseMs: number } | { kind: 'answer' | 'malformed' | 'fail' | 'repeat' | 'deadline'; which: number };

function play(session: EngineSession, given: Step, sent: string[]): void {
  const { turnId } = session;
  if (given.kind === 'post') session.say('a message', given.pauseMs);
  else if (given.kind === 'deadline') session.apply({ ...header, type: 'turn.deadline', commandId: 'late', turnId });
  else if (given.kind === 'repeat') {
    const late = sent[given.which % Math.max(1, sent.length)];
    if (late !== undefined) session.reply(late, '{"verdicts":[]}');
  } else {
    const open = [...session.open.keys()];
    const callId = open[given.which % Math.max(1, open.length)];
    if (callId === undefined) return;
    sent.push(callId);
    answer(session, callId, given);
  }
}

function answer(session: EngineSession, callId: string, { kind: how, which }: Extract<Step, { which: number }>): void {
  const { kind, inputs } = session.open.get(callId) ?? {};
  const failure = { code: 'internal', message: '', details: {} };
  if (how === 'fail') session.apply({ ...header, type: 'call.failed', commandId: callId, ...actorFields(session.turnId), callId, failure });
  else if (how === 'malformed') session.reply(callId, '');
  else if (inputs?.['call'] === 'check-reply') session.checkReply(callId, which % 2 === 0 ? [] : ['a']);
  else if (kind === 'turn-step') session.judge(callId, ['a', 'd']);
  else if (kind === 'turn-applied') session.judgeApplied(callId, ['a']);
  else session.reply(callId, 'a reply');
}

function expectWholeTurns({ log }: EngineSession): void {
  expect(log.map((event) => event.offset)).toEqual(log.map((_, index) => index));
  const turns = new Map<string, string[]>();
  for (const event of log) {
    const word = event.kind === 'status' ? `${event.status}${event.stage ? `/${event.stage}` : ''}` : event.kind;
    turns.set(event.trace_id, [...(turns.get(event.trace_id) ?? []), word]);
  }
  for (const words of turns.values()) expect(words.join(' ')).toMatch(TURN);
}

/** @returns how many turns came to a reply's call */
function expectJudgedOnce(session: EngineSession): number {
  let found = 0;
  for (const turnId of session.turnIds) {
    let judged: string[] = [];
    let checks = 0;
    for (const row of session.rows(turnId)) {
      if (row.kind === 'began') {
        judged = [];
        checks = 0;
      }
      if (row.kind === 'reply') checks += 1;
      expect(checks).toBeLessThan(2);
      if (row.kind === 'match') judged.push(...row.reference.policyIds);
      if (row.kind !== 'resolved') continue;
      found += 1;
      expect(judged.sort()).toEqual(POLICIES);
    }
  }
  return found;
}

import { describe, expect, it } from 'vitest';
import { CheckedLoop } from './test-support/checked-loop.ts';
import { joined, loopUsers, usersWithTools } from './test-support/users.ts';
import type { LoopReply, ToolOutcome } from './types.ts';

const input = { maxIterations: 3, servers: [] };
const found: ToolOutcome = { type: 'result', data: 'found', metadata: {}, isError: false };
const lost: ToolOutcome = { type: 'failed', reason: 'unreachable', message: '' };
const unusable: LoopReply = { type: 'unusable', finishReason: 'stop' };
const again: LoopReply = { type: 'again', messages: [{ role: 'assistant', content: 'Well …' }] };
const broken = { code: 'router.no_provider', message: 'secret', details: {} };

describe.each(loopUsers)('a $name that asks', (user) => {
  const started = () => new CheckedLoop(user, input);

  it('awaits one model call', () => {
    const loop = started();

    expect(loop.state).toBe(user.asking);
    expect([...loop.open]).toEqual([[`${user.actorId}-1`, 'router-call']]);
  });

  it('ends at a reply that ends it', () => {
    const loop = started();
    loop.reply({ type: 'end' });

    loop.requireEnded();
  });

  it('fails with the call', () => {
    const loop = started();
    loop.meet({ type: 'call.failed', callId: loop.lastCall, ...{ failure: broken } });

    expect(loop.state).toBe('failed');
    loop.requireEnded();
  });

  it('fails when none of its models gives a usable reply, after asking each once', () => {
    const loop = started();
    for (let asked = 1; !loop.isDone; asked += 1) {
      expect(loop.reply(unusable)).toEqual(asked < (user.name === 'turn' ? 1 : 2) ? [`router-call actor-${asked + 1}`] : []);
      expect(asked).toBeLessThan(3);
    }

    expect(loop.state).toBe('failed');
  });

  it('supersedes the call when it is interrupted', () => {
    const loop = started();

    expect(loop.meet(user.deadline)[0]).toBe('supersede actor-1');
    loop.requireEnded();
  });
});

describe.each(loopUsers.filter(({ name }) => name in joined))('a $name that messages join', (user) => {
  it('supersedes the call and asks again when a message joins, and ignores the result of the first', () => {
    const loop = new CheckedLoop(user, input);

    expect(loop.meet(joined[user.name] ?? user.deadline)).toEqual(['supersede actor-1', 'router-call actor-2']);
    expect(loop.reply({ type: 'end' }, `${user.actorId}-1`)).toEqual([]);
    loop.reply({ type: 'end' });
    loop.requireEnded();
  });
});

describe.each(usersWithTools)('a $name with tools', (user) => {
  const listed = { type: 'tools.listed', ...{ lists: { crm: 'h1', erp: 'h2' }, unavailable: {}, timedOut: false } };

  it('lists them first, and fails without one of the lists', () => {
    const lists = { ...input, servers: ['crm', 'erp'] };
    const [complete, incomplete] = [new CheckedLoop(user, lists), new CheckedLoop(user, lists)];

    expect([...complete.open.values()]).toEqual(['tool-list']);
    expect(complete.meet({ ...listed, callId: complete.lastCall })).toEqual(['disarm actor-1-overdue', 'router-call actor-2']);
    expect(incomplete.meet({ ...listed, ...{ lists: { crm: 'h1' } }, callId: incomplete.lastCall })).toEqual(['disarm actor-1-overdue']);
    expect(incomplete.state).toBe('failed');
  });

  it('stages a reply that does not end it and asks again', () => {
    expect(new CheckedLoop(user, input).reply(again)).toEqual(['stage assistant', 'router-call actor-2']);
  });

  it('makes the calls of a reply at once, stages each result, and asks again after the last', () => {
    const loop = new CheckedLoop(user, input);

    expect(loop.reply(calling(2))).toEqual([
      'stage assistant',
      ...['tool-call actor-2', 'timer actor-2-overdue', 'tool-call actor-3', 'timer actor-3-overdue'],
    ]);
    expect(loop.settle(1, found)).toEqual(['disarm actor-3-overdue', 'stage tool']);
    expect(loop.settle(0, found)).toEqual(['disarm actor-2-overdue', 'stage tool', 'tools c0,c1', 'router-call actor-4']);
  });

  it('supersedes the open calls when a server is lost, and when it is interrupted', () => {
    const [withoutServer, interrupted] = [new CheckedLoop(user, input), new CheckedLoop(user, input)];
    for (const loop of [withoutServer, interrupted]) loop.reply(calling(3));

    expect(withoutServer.settle(1, lost).slice(2, 4)).toEqual(['supersede actor-2', 'disarm actor-2-overdue']);
    expect(interrupted.meet(user.deadline).slice(0, 2)).toEqual(['supersede actor-2', 'disarm actor-2-overdue']);
    for (const loop of [withoutServer, interrupted]) loop.requireEnded();
  });

  it('makes no calls for the reply of the last iteration, and goes where its user says', () => {
    const loop = new CheckedLoop(user, { ...input, maxIterations: 1 });

    expect(loop.reply(calling(2))).toEqual(['stage assistant', ...(user.name === 'run' ? [] : ['router-call actor-2'])]);
    expect(loop.state).toBe(user.name === 'run' ? 'failed' : 'closing');
  });
});

/** A reply that calls tools. */
function calling(count: number): LoopReply {
  const calls = Array.from({ length: count }, (_, index) => ({ toolCallId: `c${index}`, toolId: `crm:tool${index}`, listHash: 'h1' }));
  return { type: 'tools', messages: [{ role: 'assistant', content: null }], calls, order: calls.map(({ toolCallId, toolId }) => ({ toolCallId, toolId })) };
}

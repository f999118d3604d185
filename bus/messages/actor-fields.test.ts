import { describe, expect, it } from 'vitest';
import { actorFields } from './actor-fields.ts';
import { routerCall } from './router.ts';
import { sessionCommand } from './session.ts';
import { asFirstVersion, asSecondVersion, firstCommand, firstRouterCall, firstToolWork } from './test-support/first-version.ts';
import { TOOL_WORK_VERSION, toolWork } from './tool.ts';

const header = { v: 1, sessionId: 'ses_1', commandId: 'run_1-1', sentAtMs: 1, answerTo: null, traceparent: null, ...actorFields('run_1') };
const work = {
  ...{ v: 1, effectId: 'run_1-2', sessionId: 'ses_1', ...actorFields('run_1'), bundleHash: 'b', deadlineAtMs: 2, createdAtMs: 1 },
  ...{ republished: false, traceparent: null },
};
const call = {
  ...{ v: 1, callId: 'run_1-1', origin: 'ses_1', want: 'none', deadlineAtMs: 2, createdAtMs: 1, detached: false, republished: false, keyId: 'k' },
  ...{ traceparent: null, maxTokens: null, request: { messages: [{ role: 'user', content: 'Hello' }] } },
  reply: { sessionId: 'ses_1', ...actorFields('run_1'), epoch: 3 },
};
const completed = { text: 'Hi', toolCalls: [], model: 'm', provider: 'p', finishReason: 'stop', usage: null };

const messages: [string, object, { parse(value: unknown): unknown }, { parse(value: unknown): unknown }][] = [
  ['call.completed', { ...header, type: 'call.completed', callId: 'run_1-1', ...completed }, sessionCommand, firstCommand],
  [
    'call.failed',
    { ...header, type: 'call.failed', callId: 'run_1-1', failure: { code: 'internal', message: 'no', details: {} } },
    sessionCommand,
    firstCommand,
  ],
  ['tool.completed', { ...header, type: 'tool.completed', callId: 'c', outcome: failed() }, sessionCommand, firstCommand],
  ['tools.listed', { ...header, type: 'tools.listed', callId: 'c', lists: { shop: 'h' }, unavailable: {} }, sessionCommand, firstCommand],
  ['effect.overdue', { ...header, type: 'effect.overdue', callId: 'c', kind: 'delivery' }, sessionCommand, firstCommand],
  ['run.deadline', { ...header, type: 'run.deadline' }, sessionCommand, firstCommand],
  ['tool list', { ...work, type: 'list', servers: ['shop'] }, toolWork, firstToolWork],
  ['tool call', { ...work, type: 'call', toolId: 'shop:find', listHash: 'h', arguments: {} }, toolWork, firstToolWork],
  ['router call', call, routerCall, firstRouterCall],
];

function failed() {
  return { type: 'failed', reason: 'timeout', message: 'no result' };
}

describe('the actor of a message', () => {
  it.each(messages)('DESIGN 3: %s is read as the release before wrote it, and as a later one may', (_name, message, schema) => {
    expect(schema.parse(asFirstVersion(message))).toEqual(message);
    expect(schema.parse(asSecondVersion(message))).toEqual({ ...message, v: 2 });
    expect(JSON.stringify(asFirstVersion(message))).not.toContain('actorId');
    expect(JSON.stringify(asSecondVersion(message))).not.toContain('turnId');
  });

  it.each(messages)('DESIGN 3: %s, as it is written, is read by the release before', (_name, message, _schema, before) => {
    expect(before.parse(message)).toMatchObject(before.parse(asFirstVersion(message)) as object);
  });

  it.each(messages)('is asked of %s: without either field it is refused', (_name, message, schema) => {
    expect(() => schema.parse(asFirstVersion(asSecondVersion(message)))).toThrow();
    const later = schema === toolWork ? TOOL_WORK_VERSION + 1 : 4;
    expect(() => schema.parse({ ...message, v: later })).toThrow();
  });

  it('is a turn in turn.deadline, in every version', () => {
    const { actorId, ...ofTurn } = { ...header, type: 'turn.deadline', turnId: 'trn_1' };
    expect(sessionCommand.parse(ofTurn)).toEqual(ofTurn);
    expect(sessionCommand.parse({ ...ofTurn, v: 2 })).toEqual({ ...ofTurn, v: 2 });
  });
});

import { describe, expect, it } from 'vitest';
import { CommandTags } from './command-tags.ts';
import { resultTypes, sessionCommand } from './messages/session.ts';

const tags = new CommandTags('the secret of a deployment under test');
const body = JSON.stringify({ v: 1, type: 'session.delete', sessionId: 'ses_1', commandId: 'c1', sentAtMs: 1, answerTo: null, traceparent: null });

describe('the tag of a command', () => {
  it('stands in the body, which any release reads as before', () => {
    expect(sessionCommand.parse(JSON.parse(tags.tagged(body)))).toEqual(JSON.parse(body));
  });

  it('is that of this secret and of these bytes, and of no other', () => {
    const tagged = tags.tagged(body);
    expect(tags.isTagged(tagged)).toBe(true);
    expect(tags.isTagged(tags.tagged(JSON.stringify({ text: 'ü \ud83d\ude00 "}' })))).toBe(true);

    const at = tagged.indexOf('"tag":"') + 7;
    const otherTag = tagged.slice(0, at) + (tagged[at] === 'A' ? 'B' : 'A') + tagged.slice(at + 1);
    const forged = [
      body,
      '',
      '{}',
      'no JSON',
      otherTag,
      tagged.replace('ses_1', 'ses_2'),
      `${tagged} `,
      tagged.slice(0, -2),
      new CommandTags('another secret').tagged(body),
    ];
    for (const text of forged) expect(tags.isTagged(text), text).toBe(false);
  });

  it('replaces one that a sender wrote itself: the last member counts', () => {
    const own = JSON.stringify({ ...JSON.parse(body), tag: 'x'.repeat(22) });

    expect(tags.isTagged(own)).toBe(false);
    expect(tags.isTagged(tags.tagged(own))).toBe(true);
  });

  it('is not required of results of workers', () => {
    expect([...resultTypes].sort()).toEqual(['call.completed', 'call.failed', 'delivery.reported', 'event-webhook.reported', 'tool.completed', 'tools.listed']);
  });
});

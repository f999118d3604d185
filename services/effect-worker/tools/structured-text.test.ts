import { describe, expect, it } from 'vitest';
import { STRUCTURED_TEXT, withStructuredText } from './structured-text.ts';

const message = (result: string) => `{"jsonrpc":"2.0","id":1,"result":${result}}`;
const textIn = (json: string) => JSON.parse(withStructuredText(json)).result[STRUCTURED_TEXT];

describe('the text of a structured result', () => {
  it.each([
    ['an integer that is not kept', '{"structuredContent": {"id": 9007199254740993} ,"content":[]}', '{"id": 9007199254740993}'],
    ['a number beyond all doubles', '{"content":[],"structuredContent":[1,{"a":[1e400]}]}', '[1,{"a":[1e400]}]'],
    ['keys that look like its own', '{"a":{"result":{"structuredContent":1}},"structuredContent":{"result":{"structuredContent":12345678901234567890}}}', null],
    ['a key before it', '{"structuredContent":{"a":1},"structuredContent":{"b":1e400}}', '{"b":1e400}'],
    ['a bare number', '{"structuredContent":-1e400}', '-1e400'],
    ['brackets and quotes in strings', '{"structuredContent":{"a":"}],\\"","b":1e400,"c":"\\n"}}', '{"a":"}],\\"","b":1e400,"c":"\\n"}'],
  ])('stands beside it, with %s', (_, result, text) => {
    expect(textIn(message(result))).toBe(text ?? '{"result":{"structuredContent":12345678901234567890}}');
  });

  it('leaves the rest of the message as it is', () => {
    const json = message('{"structuredContent":{"id":9007199254740993},"content":[{"type":"text","text":"t"}],"isError":false}');

    expect(JSON.parse(withStructuredText(json))).toEqual({
      ...JSON.parse(json),
      result: { ...JSON.parse(json).result, [STRUCTURED_TEXT]: '{"id":9007199254740993}' },
    });
  });

  it('stands in a list of messages, too', () => {
    expect(withStructuredText(`[${message('{"structuredContent":1e400}')}]`)).toContain(`"${STRUCTURED_TEXT}":"1e400"`);
  });

  it.each([
    message('{"structuredContent":{"id":9007199254740992,"a":0.1,"b":19.99}}'),
    message('{"structuredContent":{"id":1},"_meta":{"id":9007199254740993}}'),
    message('{"content":[{"type":"text","text":"9007199254740993"}],"_meta":{"structuredContent":9007199254740993}}'),
    '{"structuredContent":9007199254740993}',
  ])('is not added to %s', (json) => {
    expect(withStructuredText(json)).toBe(json);
  });

  it('stands beside it, with four million escapes in a string', () => {
    const structured = `{"text":"${'\\n'.repeat(4_000_000)}","id":9007199254740993}`;

    expect(textIn(message(`{"content":[{"type":"text","text":"${'\\"'.repeat(4_000_000)}"}],"structuredContent":${structured}}`))).toBe(structured);
  });

  it('is found in linear time', () => {
    const deep = message(`{"structuredContent":${'['.repeat(90_000)}1e400${']'.repeat(90_000)}}`);

    const before = process.cpuUsage();
    expect(withStructuredText(`[${deep}]`)).toContain(STRUCTURED_TEXT);
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1_000).toBeLessThan(4_000);
  });
});

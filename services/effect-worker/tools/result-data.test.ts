import { describe, expect, it } from 'vitest';
import { callResponse, resultOf } from './result-data.ts';

const dataOf = (answer: unknown) => {
  const outcome = resultOf(callResponse.parse(answer));
  return outcome.type === 'result' ? outcome.data : null;
};
const text = (value: string) => ({ type: 'text', text: value });

describe('a tool’s result', () => {
  it('is truncated when it is too large, with a remark, whatever its form', () => {
    const long = dataOf({ content: [text(`${'x'.repeat(65_535)}\u00e9tail`)] });
    expect(long).toBe(`${'x'.repeat(65_535)}… (the first 65536 of 65541 bytes)`);
    const wide = dataOf({ structuredContent: { rows: Array.from({ length: 20_000 }, (_, row) => row) } });
    expect(wide).toMatch(/^\{"rows":\[0,1,2,.*… \(the first 65536 of \d+ bytes\)$/);
  });

  it('is not read as JSON when it is far longer than what is shown of it', () => {
    const padded = (spaces: number) => dataOf({ content: [text(`{"a":1${' '.repeat(spaces)}}`)] });
    expect(padded(200_000)).toEqual({ a: 1 });
    expect(padded(300_000)).toMatch(/^\{"a":1 +… \(the first 65536 of 300007 bytes\)$/);
  });

  it('is not truncated at exactly the limit', () => {
    expect(dataOf({ content: [text('x'.repeat(65_536))] })).toBe('x'.repeat(65_536));
  });

  it('names pictures, sound or files instead of holding them', () => {
    const secret = Buffer.from('pixels').toString('base64');
    const content = [
      text('See:'),
      { type: 'image', data: secret, mimeType: 'image/png' },
      { type: 'audio', data: secret, mimeType: 'audio/wav' },
      { type: 'resource', resource: { uri: 'file:///a.bin', mimeType: 'application/pdf', blob: secret } },
      { type: 'resource_link', uri: 'https://shop.example/b', name: 'b' },
      { type: 'hologram', shape: 'odd' },
    ];
    expect(dataOf({ content })).toBe(
      'See:\n[image, image/png, 6 bytes]\n[audio, audio/wav, 6 bytes]\n[resource, application/pdf, file:///a.bin]\n[resource_link, b, https://shop.example/b]\n[hologram]',
    );
  });

  it.each([
    ['structured content before text', { structuredContent: { a: 1 }, content: [text('other')] }, { a: 1 }],
    ['a single JSON text as its value', { content: [text(' {"a":[1]}')] }, { a: [1] }],
    ['a text that only begins like JSON as a text', { content: [text('[draft] hello')] }, '[draft] hello'],
    ['a bare number as the text it is', { content: [text('12345678901234567890')] }, '12345678901234567890'],
    ['a JSON text with an integer that is not kept as the text it is', { content: [text('{"id":9007199254740993}')] }, '{"id":9007199254740993}'],
    ['a JSON text with a number beyond all doubles as the text it is', { content: [text('[1e400]')] }, '[1e400]'],
    ['a JSON text with decimals as its value', { content: [text('{"a":0.1,"b":19.99,"c":9007199254740992}')] }, { a: 0.1, b: 19.99, c: 9007199254740992 }],
    ['several texts joined, JSON or not', { content: [text('{"a":1}'), text('b')] }, '{"a":1}\nb'],
    ['nothing as an empty text', { content: [] }, ''],
    ['structured content before a text of it that the server names itself', { structuredContent: { a: 1 }, 'switchyard/structuredText': '{"a":2}' }, { a: 1 }],
    ['null as structured content as none', { structuredContent: null, content: [text('t')] }, 't'],
  ])('is %s', (_, answer, data) => {
    expect(dataOf(answer)).toEqual(data);
  });

  it.each([
    ['structured content', (nested: string) => ({ structuredContent: JSON.parse(`{"a":${nested}}`) })],
    ['a JSON text', (nested: string) => ({ content: [text(nested)] })],
  ])('that is nested 5,000 deep is an error that is reported to the model: %s', (_, answer) => {
    expect(resultOf(callResponse.parse(answer(`${'['.repeat(5_000)}${']'.repeat(5_000)}`)))).toEqual({
      type: 'result',
      data: { error: 'the answer of the tool can not be used: it must not be nested deeper than 64 levels' },
      metadata: {},
      isError: true,
    });
    expect(resultOf(callResponse.parse(answer(`${'['.repeat(60)}${']'.repeat(60)}`)))).toMatchObject({ isError: false });
  });

  it('that is nested deeper than the stack is an error too', () => {
    const nested = JSON.parse(`${'['.repeat(30_000)}${']'.repeat(30_000)}`);
    expect(resultOf(callResponse.parse({ structuredContent: nested, _meta: { a: nested } }))).toMatchObject({ isError: true, metadata: {} });
  });

  it('drops its metadata when that is nested too deeply', () => {
    const meta = JSON.parse(`{"a":${'['.repeat(5_000)}${']'.repeat(5_000)}}`);
    expect(resultOf(callResponse.parse({ content: [text('t')], _meta: meta }))).toEqual({ type: 'result', data: 't', metadata: {}, isError: false });
  });

  it('of more than a thousand parts has the first, with a remark', () => {
    const shown = String(dataOf({ content: [...Array.from({ length: 1_000 }, () => text('a')), { type: 7 }, text('b')] }));
    expect(shown.split('\n')).toEqual([...Array.from({ length: 1_000 }, () => 'a'), '… (the first 1000 of 1002 parts)']);
  });

  it('has its metadata beside the data, unless that is too large', () => {
    expect(resultOf(callResponse.parse({ content: [], _meta: { source: 's' }, isError: true }))).toEqual({
      type: 'result',
      data: '',
      metadata: { source: 's' },
      isError: true,
    });
    expect(resultOf(callResponse.parse({ content: [], _meta: { much: 'x'.repeat(20_000) } }))).toMatchObject({ metadata: {}, isError: false });
  });
});

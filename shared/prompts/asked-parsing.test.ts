import { describe, expect, it } from 'vitest';
import type { ChatRequest } from '../contracts/router/chat-request.ts';
import { askedParsing } from './asked-parsing.ts';
import { DeferredMessages, deferMessages } from './deferred-messages.ts';

const file = (data: string | undefined) => ({ type: 'file' as const, file: { filename: 'a', file_data: data } });
const asking = (items: object[], plugins?: ChatRequest['plugins']) =>
  ({ messages: [{ role: 'user', content: [{ type: 'text', text: 'What is this?' }, ...items] }], ...(plugins && { plugins }) }) as ChatRequest;
const PDF = 'data:application/pdf;base64,AAAA';

describe('the reading of files that a request has without naming the plugin', () => {
  it.each([PDF, 'data:application/x-pdf;name=a.pdf;base64,AAAA', 'DATA:APPLICATION/PDF;base64,AAAA', 'https://a.example/a', 'http://a.example/a.pdf'])(
    'is that of a PDF, or of an address that may have one (%s)',
    (data) => {
      expect(askedParsing(asking([file(data)]))).toEqual({ at: null, engine: null });
      expect(askedParsing(asking([file(data)], [{ id: 'web' }]))).toEqual({ at: null, engine: null });
    },
  );

  it.each([
    [file('data:text/plain;base64,AAAA')],
    [file('data:application/pdf,AAAA')],
    [file('file-1')],
    [file(undefined)],
    [{ type: 'image_url', image_url: { url: PDF } }],
  ])('is none without a PDF: %j', (item) => {
    expect(askedParsing(asking([item]))).toBeNull();
  });

  it('is none where the plugin is switched off, and what it asks for where it is named', () => {
    expect(askedParsing(asking([file(PDF)], [{ id: 'file-parser', enabled: false }]))).toBeNull();
    expect(askedParsing(asking([file(PDF)], [{ id: 'web' }, { id: 'file-parser' }]))).toEqual({ at: 1, engine: null });
    expect(askedParsing(asking([file(PDF)], [{ id: 'file-parser', pdf: { engine: 'native' } }]))).toEqual({ at: 0, engine: 'native' });
  });

  it('parses no deferred message', () => {
    const deferred = new DeferredMessages(Buffer.from('broken'), { chars: 6, extraBytes: 0, contentChars: 6 });
    expect(askedParsing(deferMessages({ messages: [] } as ChatRequest, deferred))).toBeNull();
  });
});

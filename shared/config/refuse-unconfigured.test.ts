import { expect, it } from 'vitest';
import { refuseUnconfigured } from './refuse-unconfigured.ts';

const refused = (param: string) => expect.objectContaining({ code: 'request.invalid', details: { param } });

it('names the place of a plugin whose engine is not configured', () => {
  const request = { plugins: [{ id: 'response-healing' as const }, { id: 'unknown' }, { id: 'moderation' as const }] };
  expect(() => refuseUnconfigured(request, {})).toThrow(refused('plugins[2]'));
  expect(() => refuseUnconfigured(request, { moderation: {} })).not.toThrow();
});

it('accepts a request that switches the plugin off, and one without plugins', () => {
  expect(() => refuseUnconfigured({ plugins: [{ id: 'moderation', enabled: false }] }, {})).not.toThrow();
  expect(() => refuseUnconfigured({}, {})).not.toThrow();
});

it('refuses a search engine that the router does not have, and leaves to the worker what endpoints decide', () => {
  const asking = (engine?: string) => ({ plugins: [{ id: 'web' as const, ...(engine && { engine }) }] });
  expect(() => refuseUnconfigured(asking('exa'), {})).toThrow(refused('plugins[0].engine'));
  expect(() => refuseUnconfigured(asking('exa'), { web: { name: 'other' } })).toThrow(refused('plugins[0].engine'));
  for (const engine of ['other', 'native', undefined]) expect(() => refuseUnconfigured(asking(engine), { web: { name: 'other' } })).not.toThrow();
  expect(() => refuseUnconfigured(asking('native'), {})).not.toThrow();
});

it('refuses an OCR engine that the router does not have, and never what it reads with by itself', () => {
  const asking = (pdf?: object) => ({ plugins: [{ id: 'unknown' }, { id: 'file-parser' as const, ...(pdf && { pdf }) }] });
  for (const configured of [{}, { ocr: null }, { ocr: { name: 'other-ocr' } }]) {
    expect(() => refuseUnconfigured(asking({ engine: 'acme-ocr' }), configured)).toThrow(refused('plugins[1].pdf.engine'));
    for (const pdf of [undefined, {}, { engine: 'pdf-text' }, { engine: 'native' }]) expect(() => refuseUnconfigured(asking(pdf), configured)).not.toThrow();
  }
  expect(() => refuseUnconfigured(asking({ engine: 'acme-ocr' }), { ocr: { name: 'acme-ocr' } })).not.toThrow();
});

import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { axeFindings, keepScreenshot, type OpenedPage, startBrowser, type TestBrowser } from '../helpers/browser.ts';
import { listenersOf } from '../helpers/page-listeners.ts';
import { type PageServer, type PageServerOptions, startPageServer } from '../helpers/page-server.ts';

/** What runs, loads or frames something when a page takes it as HTML. */
const HOSTILE =
  '<img src="http://127.0.0.1:9/x.png" onerror="window.hacked = 1"><script>window.hacked = 1</script><svg onload="window.hacked = 1"></svg>' +
  '<iframe srcdoc="<script>parent.hacked = 1</script>"></iframe><style>body { display: none }</style><a href="javascript:window.hacked = 1">x</a>';
const HOSTILE_MARKDOWN =
  `${HOSTILE}\n\n![picture](http://127.0.0.1:9/p.png) ![a](javascript:window.hacked=1) [link](javascript:window.hacked=1) [data](data:text/html,x)\n\n` +
  '[good](https://example.com/a) <https://example.com/b> [ref]: x\n\n[x]: javascript:window.hacked=1\n\n[x] [vb](vbscript:x)\n\n```html\n<script>window.hacked = 1</script>\n```';
/** Runs in the page, as all texts of scripts here: the tests know no types of browsers. */
const FITS = 'document.documentElement.scrollWidth <= document.documentElement.clientWidth';
const COUNT_CHANGES = `
  let count = 0;
  const observer = new MutationObserver(() => {
    globalThis.changes = ++count;
  });
  observer.observe(document.querySelector('.log'), { subtree: true, childList: true, characterData: true });
`;
/** A window of a log is never larger. */
const MAX_SHOWN = 150;

let browser: TestBrowser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser.close());

const opened: OpenedPage[] = [];
const servers: PageServer[] = [];
afterEach(async () => {
  const all = opened.splice(0);
  await Promise.all(all.map(({ context }) => context.close()));
  await Promise.all(servers.splice(0).map((server) => server.close()));
  expect(all.flatMap(({ complaints }) => complaints)).toEqual([]);
});

async function serve(options: PageServerOptions = {}): Promise<PageServer> {
  const server = await startPageServer(options);
  servers.push(server);
  return server;
}

async function openPage(server: PageServer, options: Parameters<TestBrowser['open']>[1] = {}): Promise<Page> {
  const one = await browser.open(server.origin, options);
  opened.push(one);
  await one.page.goto('/chat?session=ses_0');
  await one.page.getByLabel('Message', { exact: true }).waitFor();
  return one.page;
}

const entries = (page: Page) => page.locator('.log [data-offset]');
const textsOf = async (page: Page) => (await page.locator('.message .text').allTextContents()).map((text) => text.trim());
const hacked = (page: Page) => page.evaluate(() => Reflect.get(globalThis, 'hacked'));

describe('the chat page', () => {
  it('DESIGN 11: the page shows HTML and scripts in any field as text', async () => {
    const server = await serve({ agentName: `Agent ${HOSTILE}`, sessionTitles: [`Title ${HOSTILE}`] });
    server.append(
      { kind: 'user_message', id: HOSTILE, source: 'customer', text: HOSTILE_MARKDOWN },
      { kind: 'assistant_message', id: 'evt_1', source: 'human_agent', participant: { id: null, display_name: `Name ${HOSTILE}` }, text: HOSTILE_MARKDOWN },
      { kind: 'tool', id: 'evt_2', tool_calls: [{ tool_id: HOSTILE, arguments: { [HOSTILE]: HOSTILE }, result: { data: HOSTILE, metadata: {} } }] },
      { kind: 'status', id: 'evt_3', status: 'error', error_detail: HOSTILE },
      { kind: 'preamble', id: 'evt_4', text: HOSTILE_MARKDOWN },
      { kind: 'status', id: 'evt_5', status: 'processing', stage: HOSTILE },
    );
    const page = await openPage(server);
    await page.locator('details summary').click();
    server.send('snapshot', { message_id: 'evt_9', seq: 1, text: HOSTILE_MARKDOWN });
    await page.locator('.message.open').waitFor();

    expect(await page.title()).toBe(`Agent ${HOSTILE}`);
    for (const place of ['h1', '.sessions .title', '.by b', '.text', 'summary', 'pre', '.note code', '[role=status]', '.open .text']) {
      expect([place, (await page.locator(place).allTextContents()).some((text) => text.includes('<script>window.hacked = 1</script>'))]).toEqual([place, true]);
    }
    expect(await page.locator('.chat :is(img, script, svg, iframe, style, object, embed, video, link)').count()).toBe(0);
    const links = await page.locator('.text a').evaluateAll((all) => all.map((link) => [link.getAttribute('href'), link.getAttribute('rel')]));
    expect(links).toContainEqual(['https://example.com/a', 'noopener noreferrer']);
    expect(links.filter(([href]) => href !== null && !/^https?:/.test(href))).toEqual([]);
    expect(links.filter(([href, rel]) => href !== null && rel !== 'noopener noreferrer')).toEqual([]);
    expect(await hacked(page)).toBeUndefined();
  });

  it('DESIGN 9: the page ignores unknown kinds, messages without text, and what is no field of its type', async () => {
    const server = await serve();
    server.append(
      { kind: 'mood', text: 'of a later version' },
      { kind: 'assistant_message' },
      { kind: 'assistant_message', text: null },
      { kind: 'user_message', text: 7 },
      { kind: 'preamble', text: '' },
      { kind: 'custom', data: { text: 'not for people' } },
      { kind: 'tool', tool_calls: 'none' },
      { kind: 'tool', tool_calls: [null, { tool_id: 7 }] },
      { kind: 'status', status: 'error', error_detail: { a: 1 } },
      { kind: 'status', status: { a: 1 }, stage: 7 },
      { kind: 'assistant_message', text: 'the only one' },
    );
    const page = await openPage(server);

    await expect.poll(() => entries(page).count()).toBe(3);
    expect(await textsOf(page)).toEqual(['the only one']);
  });

  it.each([
    ['nested quotes', `${'>'.repeat(20_000)} deep`],
    ['nested lists', Array.from({ length: 2_000 }, (_, depth) => `${' '.repeat(2 * depth)}- x`).join('\n')],
    ['opened brackets', '['.repeat(100_000)],
    ['brackets and parentheses', '[a]('.repeat(25_000)],
    ['emphasis', `${'*a '.repeat(15_000)}${'_b '.repeat(15_000)}`],
    ['a table', `|${'a|'.repeat(3_000)}\n|${'-|'.repeat(3_000)}\n${`|${'b|'.repeat(10)}\n`.repeat(2_000)}`],
    ['links', '<http://a'.repeat(10_000)],
    ['a million characters', 'word '.repeat(200_000)],
    ['one long word', 'w'.repeat(1_000_000)],
  ])('answers keys beside a message of %s', async (_, text) => {
    const server = await serve();
    const page = await openPage(server);
    server.append({ kind: 'assistant_message', id: 'evt_0', text });
    await entries(page).first().waitFor();
    await page.getByLabel('Message', { exact: true }).fill('');
    await page.keyboard.type('still here');

    expect(await page.getByLabel('Message', { exact: true }).inputValue()).toBe('still here');
    expect(await page.evaluate(FITS)).toBe(true);
  });

  it('sends a message of 1 MB, and says why one is refused', async () => {
    const server = await serve();
    const page = await openPage(server);
    const text = 'A long message. '.repeat(65_536);
    await page.getByLabel('Message', { exact: true }).fill(text);
    await page.getByRole('button', { name: 'Send' }).click();
    await entries(page).first().waitFor();
    expect((await entries(page).first().locator('.text').textContent())?.length).toBe(text.length);

    server.refuseMessages(413, { error: 'the body is too large', code: 'payload_too_large' });
    await page.getByLabel('Message', { exact: true }).fill('too much');
    await page.getByLabel('Message', { exact: true }).press('Enter');
    await page.getByText('Not sent: the body is too large (payload_too_large)').waitFor();
    await page.getByRole('button', { name: 'Edit' }).click();
    expect(await page.getByLabel('Message', { exact: true }).inputValue()).toBe('too much');
    expect(await page.locator('.unsent').count()).toBe(0);
  });

  it('shows thousands of deltas with few changes of the page, and answers keys meanwhile', async () => {
    const server = await serve();
    const page = await openPage(server);
    await page.locator('[data-transport]').waitFor();
    await page.evaluate(COUNT_CHANGES);
    const words = Array.from({ length: 5_000 }, (_, at) => `w${at} `);
    for (const [at, text] of words.entries()) {
      server.send('delta', { message_id: 'evt_0', seq: at, text });
      if (at === 2_500) await page.keyboard.type('meanwhile');
    }
    await expect.poll(async () => (await page.locator('.message.open .text').textContent())?.trim()).toBe(words.join('').trim());

    expect(await page.getByLabel('Message', { exact: true }).inputValue()).toBe('meanwhile');
    expect(await page.evaluate(() => Reflect.get(globalThis, 'changes'))).toBeLessThan(2_000);
    server.append({ kind: 'assistant_message', id: 'evt_0', text: 'in the end' });
    await expect.poll(() => textsOf(page)).toEqual(['in the end']);
  });

  it('opens a log of 50,000 events by its end, shows a window of it, and earlier events on demand', async () => {
    const server = await serve();
    server.append(...many(0, 50_000));
    const page = await openPage(server);
    await expect.poll(() => entries(page).last().getAttribute('data-offset')).toBe('49999');

    expect(Math.min(...server.readFrom)).toBeGreaterThanOrEqual(49_500);
    expect(await entries(page).count()).toBeLessThanOrEqual(MAX_SHOWN);
    for (let step = 0; step < 3; step += 1) {
      const before = Number(await entries(page).first().getAttribute('data-offset'));
      await page.getByRole('button', { name: 'Show earlier messages' }).click();
      await expect.poll(async () => Number(await entries(page).first().getAttribute('data-offset'))).toBeLessThan(before);
    }
    const offsets = await entries(page).evaluateAll((all) => all.map((entry) => Number(entry.getAttribute('data-offset'))));
    expect(offsets).toEqual(offsets.map((_, at) => (offsets[0] ?? 0) + at));
  });

  it('stays small while 50,000 events come, and listens to no more', async () => {
    const server = await serve();
    const page = await openPage(server);
    await page.locator('[data-transport]').waitFor();
    const comesTo = async (offset: number) => expect.poll(() => entries(page).last().getAttribute('data-offset')).toBe(String(offset));
    server.append(...many(0, 5_000));
    await comesTo(4_999);
    const before = await listenersOf(page);
    for (let from = 5_000; from < 50_000; from += 5_000) {
      server.append(...many(from, 5_000));
      await comesTo(from + 4_999);
    }

    expect(before.inSets).toBeGreaterThan(0);
    await expect.poll(() => listenersOf(page)).toEqual(before);
    expect(await entries(page).count()).toBeLessThanOrEqual(MAX_SHOWN);
    await page.getByRole('button', { name: 'Show earlier messages' }).click();
    await expect.poll(() => entries(page).first().getAttribute('data-offset')).toBe(String(50_000 - 2 * MAX_SHOWN));
  });
});

describe('the looks of the chat page', () => {
  it.each([
    ['wide, light', 1_280, false],
    ['wide, dark', 1_280, true],
    ['360 px, light', 360, false],
    ['360 px, dark', 360, true],
  ])('%s: nothing is cut off, and axe-core finds nothing', async (name, width, isDark) => {
    const server = await serve({ agentName: 'Acme support', sessionTitles: ['How long is the warranty?', 'A machine that leaks', 'Order 4711'] });
    server.append(...EVERYTHING);
    const page = await openPage(server, { width, height: width < 500 ? 740 : 800, isDark });
    await page.locator('.note.error').waitFor();
    server.send('snapshot', { message_id: 'evt_9', seq: 1, text: 'The warranty is **two years** and cov' });
    await page.locator('.message.open').waitFor();
    await keepScreenshot(page, `chat ${name}`.replaceAll(/\W+/g, '-'));

    expect(await page.evaluate(FITS)).toBe(true);
    expect(await axeFindings(page, { coloursAlone: isDark })).toEqual([]);
    if (width > 500) return;
    await page.getByRole('button', { name: 'Conversations' }).click();
    await page.getByRole('link', { name: 'A machine that leaks' }).waitFor();
    await keepScreenshot(page, `chat ${name} list`.replaceAll(/\W+/g, '-'));
    expect(await axeFindings(page, { coloursAlone: isDark })).toEqual([]);
  });
});

const EVERYTHING: Record<string, unknown>[] = [
  { kind: 'user_message', id: 'evt_0', source: 'customer', text: 'Hello! My machine leaks. What does the warranty cover?' },
  { kind: 'preamble', id: 'evt_1', source: 'ai_agent', text: 'Let me look that up.' },
  {
    kind: 'tool',
    id: 'evt_2',
    tool_calls: [
      { tool_id: 'shop:order_state', arguments: { order_number: '4711' }, result: { data: { state: 'sent' }, metadata: {} } },
      { tool_id: 'shop:warranty', arguments: {}, result: { data: ['two years'], metadata: {} } },
    ],
  },
  {
    kind: 'assistant_message',
    id: 'evt_3',
    source: 'ai_agent',
    text: 'It covers:\n\n1. **Leaks** of the tank\n2. The `pump`\n\n| Part | Years |\n|---|---|\n| Tank | 2 |\n| Pump | 3 |\n\n> Keep the receipt.\n\nSee [the terms](https://example.com/terms).\n\n```\nclaim --order 4711 --reason "the tank leaks, and it has done so since the very first day of use"\n```',
  },
  { kind: 'assistant_message', id: 'evt_4', source: 'human_agent', participant: { id: null, display_name: 'Service desk' }, text: 'I can take this over.' },
  { kind: 'user_message', id: 'evt_5', source: 'customer', text: 'Thank you' },
  { kind: 'status', id: 'evt_6', status: 'cancelled' },
  { kind: 'status', id: 'evt_7', status: 'error', error_detail: 'router.provider_unavailable' },
  { kind: 'status', id: 'evt_8', status: 'processing', stage: 'composing' },
];

function many(from: number, count: number): Record<string, unknown>[] {
  return Array.from({ length: count }, (_, at) => ({
    kind: at % 2 === 0 ? 'user_message' : 'assistant_message',
    id: `evt_${from + at}`,
    text: `Message **${from + at}** of a long conversation`,
  }));
}

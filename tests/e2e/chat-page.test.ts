import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createAgentClient } from '../../client/agent-client.ts';
import { axeFindings, keepScreenshot, type OpenedPage, startBrowser, type TestBrowser } from '../helpers/browser.ts';
import { idle, messages, type ShownEntry, say, sessionOf, shownAs, shownLog } from '../helpers/chat-page.ts';
import { type DeploymentUnderTest, type Shape, shapes } from '../helpers/deployment-under-test.ts';
import { type TcpProxy, tcpProxy } from '../helpers/tcp-proxy.ts';
import { casesOfToday } from '../helpers/tier.ts';

const TWO_GATEWAYS = { 'router-gateway': 0, 'agent-gateway': 2, 'actor-host': 1, 'router-worker': 1, 'effect-worker': 1 };
/** A reply of some hundred words, one every 40 ms. */
const LONG = '!slow 40 How long is the warranty?';
const SHORT = 'How long is the warranty?';
/** Run in the page, as texts: the tests know no types of browsers. */
const FITS = 'document.documentElement.scrollWidth <= document.documentElement.clientWidth';
const GROUND = 'getComputedStyle(document.body).backgroundColor';
/** Of web/theme.css. */
const [LIGHT_GROUND, DARK_GROUND] = ['rgb(246, 247, 249)', 'rgb(18, 22, 29)'];

/** Playwright shows each of its pages, whatever is in front of it: this says which are hidden. */
const MAY_BE_HIDDEN = `
  globalThis.isHidden = false;
  Object.defineProperty(document, 'hidden', { get: () => globalThis.isHidden });
`;
const SET_HIDDEN = (isHidden: boolean) => `globalThis.isHidden = ${isHidden}; document.dispatchEvent(new Event('visibilitychange'))`;
/** Two more than a browser opens connections to a server. */
const TABS = 8;

const shapesOfToday = casesOfToday(shapes);

let browser: TestBrowser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser.close());

describe.each(shapes)('the chat page, with Switchyard $name', (shape: Shape) => {
  const { start, isCluster } = shape;
  /** Of cases that do not depend on the shape, which run on one of the two a day: a browser takes much CPU. */
  const onOneShape = (title: string, work: () => Promise<void>) => {
    if (shapesOfToday.includes(shape)) it(title, work);
  };
  let deployment: DeploymentUnderTest;
  /** In place of a balancer: each connection goes to the next gateway, and it can be cut. */
  let proxy: TcpProxy;
  let origin = '';
  const opened: OpenedPage[] = [];
  beforeAll(async () => {
    deployment = await start({ STREAMING: 'true', COALESCE_MS: '30' }, TWO_GATEWAYS);
    proxy = await tcpProxy(() => Number(new URL(deployment.nextAgentUrl()).port));
    origin = `http://127.0.0.1:${proxy.port}`;
  });
  afterEach(async () => {
    const all = opened.splice(0);
    await Promise.all(all.map(({ context }) => context.close()));
    expect(all.flatMap(({ complaints }) => complaints)).toEqual([]);
  });
  afterAll(async () => {
    await proxy.close();
    // One that was killed has no exit code.
    await (deployment.cluster ?? deployment).stop();
  });

  const client = () => createAgentClient({ baseUrl: deployment.nextAgentUrl(), apiKey: deployment.keys.agentKey });

  /** A browser that has logged in. */
  async function openChat(): Promise<OpenedPage> {
    const one = await browser.open(origin, { agentKey: deployment.keys.agentKey });
    opened.push(one);
    await one.page.goto('/chat');
    await one.page.getByLabel('Message', { exact: true }).waitFor();
    return one;
  }

  onOneShape('is reached by the login, whose key a browser keeps, and left by the logout', async () => {
    const one = await browser.open(origin);
    opened.push(one);
    const { page } = one;

    await page.goto('/');
    expect(new URL(page.url()).pathname).toBe('/auth/login');
    await page.getByLabel('Key of the agent').fill(deployment.keys.agentKey);
    await page.keyboard.press('Enter');
    await page.getByLabel('Message', { exact: true }).waitFor();
    expect(new URL(page.url()).pathname).toBe('/chat');
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('Key of the agent').waitFor();
    await page.goto('/chat');
    expect(page.url()).toBe(`${origin}/auth/login?next=%2Fchat`);
  });

  // The same files on both.
  if (!isCluster)
    it.each([
      ['wide, light', 1_280, false],
      ['wide, dark', 1_280, true],
      ['360 px, light', 360, false],
      ['360 px, dark', 360, true],
    ])('has a login that looks like it, %s: nothing is cut off, the keyboard suffices, and axe-core finds nothing', async (name, width, isDark) => {
      const one = await browser.open(origin, { width, height: width < 500 ? 740 : 800, isDark });
      opened.push(one);
      const { page } = one;
      await page.goto('/auth/login?next=%2Fchat');
      const expectInOrder = async (which: string) => {
        await keepScreenshot(page, `login ${name} ${which}`.replaceAll(/\W+/g, '-'));
        expect(await page.evaluate(FITS)).toBe(true);
        expect(await axeFindings(page, { coloursAlone: isDark && which === 'first' })).toEqual([]);
      };
      await page.keyboard.press('Tab');
      await page.locator('input:focus').waitFor();
      expect(await page.evaluate(GROUND)).toBe(isDark ? DARK_GROUND : LIGHT_GROUND);
      await expectInOrder('first');
      // A login may be tried five times a minute: one of these does.
      if (width !== 360 || !isDark) return;
      await page.keyboard.type('another-key');
      await page.keyboard.press('Enter');
      await page.getByRole('alert').waitFor();
      await expectInOrder('refused');
    });

  onOneShape('talks by keyboard alone: shows a reply while it is written, statuses, and in the end the log', async () => {
    const { page } = await openChat();
    await page.keyboard.type(LONG);
    await page.keyboard.press('Enter');

    await page.locator('[data-status=acknowledged], [data-status=processing], [data-status=typing]').waitFor();
    const open = page.locator('.message.open .text');
    await open.waitFor();
    const first = (await open.textContent()) ?? '';
    await expect.poll(() => page.locator('.message.agent .text').last().textContent()).not.toBe(first);
    await idle(page);
    expect(await shownLog(page)).toEqual(await storedLog(sessionOf(page)));
    expect(await page.locator('[aria-live=polite]').textContent()).toBe((await shownLog(page)).at(-1)?.text);
    await keepScreenshot(page, `chat-${isCluster ? 'cluster' : 'standalone'}`);
    expect(await axeFindings(page)).toEqual([]);
  });

  onOneShape('DESIGN 9: the page takes a conversation up again after a reload, and shows it in several tabs', async () => {
    const { page, context } = await openChat();
    await say(page, SHORT);
    await idle(page);
    await page.reload();
    const other = await context.newPage();
    await other.goto(page.url());
    await say(other, 'And how do I descale the machine?');
    await expect.poll(() => messages(page).count()).toBeGreaterThanOrEqual(4);
    await Promise.all([idle(page), idle(other)]);

    const log = await storedLog(sessionOf(page));
    await expect.poll(() => shownLog(page)).toEqual(log);
    expect(await shownLog(other)).toEqual(log);
    expect(log.filter(({ author }) => author === 'customer')).toHaveLength(2);
  });

  // The same files on both.
  if (!isCluster)
    it('DESIGN 9: the page is shown in eight tabs of a browser, of which those that are hidden keep no connection and miss nothing', async () => {
      const { page, context } = await openChat();
      await say(page, SHORT);
      await idle(page);
      const address = page.url();
      await context.addInitScript(MAY_BE_HIDDEN);
      await page.reload();
      const tabs = [page];
      for (let count = 1; count < TABS; count += 1) {
        await tabs.at(-1)?.evaluate(SET_HIDDEN(true));
        const next = await context.newPage();
        await next.goto(address);
        await idle(next);
        tabs.push(next);
      }
      const last = tabs.at(-1) ?? page;
      await say(last, LONG);
      await last.locator('.message.open').waitFor();
      await last.evaluate(SET_HIDDEN(true));
      // In the middle of the reply, and behind it.
      await page.evaluate(SET_HIDDEN(false));
      await page.locator('.message.open').waitFor();
      await idle(page);

      const log = await storedLog(sessionOf(page));
      expect(log.filter(({ author }) => author === 'customer')).toHaveLength(2);
      expect(await shownLog(page)).toEqual(log);
      for (const [at, tab] of tabs.slice(1).entries()) {
        await tabs[at]?.evaluate(SET_HIDDEN(true));
        await tab.evaluate(SET_HIDDEN(false));
        await expect.poll(() => shownLog(tab)).toEqual(log);
      }
    });

  onOneShape('DESIGN 9: the page loses and doubles nothing over connections that are cut all the time', async () => {
    const { page } = await openChat();
    await say(page, LONG);
    for (let cut = 0; cut < 4; cut += 1) {
      await page.locator('.message.open').waitFor();
      proxy.cut();
      await say(page, `!slow 40 Question ${cut}: how long is the warranty?`);
    }
    await expect.poll(() => messages(page, 'customer').count()).toBe(5);
    await idle(page);

    const log = await storedLog(sessionOf(page));
    await expect.poll(() => shownLog(page)).toEqual(log);
    expect(log.filter(({ author }) => author === 'customer')).toHaveLength(5);
  });

  // It waits for retries: once is enough.
  if (!isCluster)
    it('DESIGN 9: the page keeps what is written while the browser is offline, and sends it once', async () => {
      const { page, context } = await openChat();
      await say(page, SHORT);
      await idle(page);
      let failures = 0;
      page.on('requestfailed', (request) => {
        if (request.method() === 'POST') failures += 1;
      });
      await context.setOffline(true);
      proxy.cut();
      await say(page, 'Written offline');
      await page.getByText('Connection lost').waitFor();
      // More than the client tries for one message.
      await expect.poll(() => failures, { timeout: 90_000 }).toBeGreaterThan(8);
      expect(await page.locator('.unsent').textContent()).toContain('Sending');
      await context.setOffline(false);

      await expect.poll(() => messages(page, 'customer').count()).toBe(2);
      await idle(page);
      await expect.poll(() => page.locator('.unsent').count()).toBe(0);
      expect(await shownLog(page)).toEqual(await storedLog(sessionOf(page)));
    });

  onOneShape('DESIGN 9: the page sends a message once, though it is left before the answer comes, and opened again', async () => {
    const { page } = await openChat();
    await say(page, SHORT);
    await idle(page);
    const [session, address] = [sessionOf(page), page.url()];
    // Requests go through, and their answers do not; the log can't be read.
    let isDeaf = true;
    const keys: (string | undefined)[] = [];
    const [wasPosted, wasPostedAgain] = [signal(), signal()];
    await page.route('**/events*', async (route) => {
      const request = route.request();
      const isPost = request.method() === 'POST';
      if (isPost) keys.push((await request.allHeaders())['idempotency-key']);
      if (isDeaf && isPost) await route.fetch().then(() => wasPosted.give());
      if (isDeaf) return route.abort();
      // The message is still unsent for the page when it sends it again.
      if (!isPost) await wasPostedAgain.given;
      await route.continue();
      if (isPost) wasPostedAgain.give();
    });
    proxy.cut();
    await say(page, 'Once');
    await wasPosted.given;
    await page.goto('/auth/login');
    const before = keys.length;
    isDeaf = false;
    await page.goto(address);
    await wasPostedAgain.given;
    await idle(page);
    await expect.poll(() => page.locator('.unsent').count()).toBe(0);

    expect(keys.length).toBeGreaterThan(before);
    expect(new Set(keys).size).toBe(1);
    expect((await storedLog(session)).filter(({ text }) => text === 'Once')).toHaveLength(1);
    await expect.poll(() => shownLog(page)).toEqual(await storedLog(session));
    await page.unrouteAll({ behavior: 'ignoreErrors' });
  });

  onOneShape('keeps an unsent message over a login whose key no longer counts', async () => {
    const { page, context } = await openChat();
    await say(page, SHORT);
    await idle(page);
    await context.addCookies([{ name: 'agent_auth', value: 'another-key', url: origin, httpOnly: true, sameSite: 'Strict' }]);
    proxy.cut();
    await say(page, 'Behind the change');
    await page.getByRole('link', { name: 'Log in again' }).click();
    await page.getByLabel('Key of the agent').fill(deployment.keys.agentKey);
    await page.keyboard.press('Enter');

    await expect.poll(() => messages(page, 'customer').count()).toBe(2);
    expect((await storedLog(sessionOf(page))).filter(({ text }) => text === 'Behind the change')).toHaveLength(1);
  });

  onOneShape('shows an agent that fails, with the reason', async () => {
    const { page } = await openChat();
    await say(page, '!fail 500 hello');

    await page.locator('.note.error code').waitFor();
    expect(await shownLog(page)).toEqual(await storedLog(sessionOf(page)));
  });

  onOneShape('DESIGN 9: the page reads by polls where no stream comes through', async () => {
    const { page } = await openChat();
    await page.route('**/events*', (route) => {
      const headers = { ...route.request().headers() };
      if (headers['accept'] === 'text/event-stream') headers['accept'] = 'application/json';
      return route.continue({ headers });
    });
    await say(page, SHORT);

    await page.locator('[data-transport=polling]').waitFor();
    await expect.poll(() => messages(page, 'agent').count()).toBeGreaterThan(0);
    await idle(page);
    await expect.poll(() => shownLog(page)).toEqual(await storedLog(sessionOf(page)));
  });

  if (isCluster)
    it('DESIGN 9: the page goes on while gateways are killed', async () => {
      const { cluster } = deployment;
      if (cluster === null) throw new Error('expected a cluster');
      const { page } = await openChat();
      for (let round = 0; round < 2; round += 1) {
        await say(page, LONG);
        await page.locator('.message.open').waitFor();
        cluster.running('agent-gateway')[0]?.signal('SIGKILL');
        await cluster.add('agent-gateway');
      }
      await expect.poll(() => messages(page, 'customer').count()).toBe(2);
      await idle(page);

      await expect.poll(() => shownLog(page)).toEqual(await storedLog(sessionOf(page)));
    });

  async function storedLog(sessionId: string): Promise<ShownEntry[]> {
    return (await client().events.list(sessionId, { limit: 1_000 })).flatMap(shownAs);
  }
});

function signal(): { given: Promise<void>; give: () => void } {
  let give = () => {};
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { given, give };
}

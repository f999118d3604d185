import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { source as axeSource } from 'axe-core';
import { type BrowserContext, chromium, type Page } from 'playwright-core';
import { inject } from 'vitest';
import { freeFolder } from './free-folder.ts';
import { root } from './run-program.ts';
import { tier } from './tier.ts';

/** As root Chromium has no sandbox; it asks nothing of other hosts. */
const FLAGS = [
  ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  ...['--disable-dev-shm-usage', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'],
];
/** Artefacts: git ignores them. */
const SCREENSHOTS = join(root, 'tests/screenshots');
const keepsScreenshots = tier === 'deep' || process.env['SWITCHYARD_SCREENSHOTS'] === '1';
/** Of everything that a page is waited for, on a busy machine. */
const PAGE_TIMEOUT_MS = 60_000;

export interface OpenedPage {
  page: Page;
  context: BrowserContext;
  /** What pages of its context did that none may do: errors, violations of their policy, requests to other hosts. */
  complaints: string[];
}

export interface TestBrowser {
  /** A browser of its own as far as cookies and storage go. @param origin of the only server that it may ask */
  open(origin: string, options?: OpenOptions): Promise<OpenedPage>;
  close(): Promise<void>;
}

interface OpenOptions {
  width?: number;
  height?: number;
  isDark?: boolean;
  /** Origins of further servers that it may ask. */
  alsoAsks?: readonly string[];
  /** Is sent as the cookie of a login to the origin. */
  agentKey?: string;
}

/** A browser of this machine. @param program its path, where the run of tests does not provide it */
export async function startBrowser(program = inject('chromiumPath')): Promise<TestBrowser> {
  const browser = await chromium.launch({ executablePath: program, args: FLAGS, env: { ...process.env, HOME: await freeFolder('browser') } });
  return {
    async open(origin, { width = 1_280, height = 800, isDark = false, alsoAsks = [], agentKey } = {}) {
      const context = await browser.newContext({ baseURL: origin, viewport: { width, height }, colorScheme: isDark ? 'dark' : 'light' });
      context.setDefaultTimeout(PAGE_TIMEOUT_MS);
      if (agentKey !== undefined) await context.addCookies([{ name: 'agent_auth', value: agentKey, url: origin, httpOnly: true, sameSite: 'Strict' }]);
      const complaints = complaintsAbout(context, [origin, ...alsoAsks]);
      return { page: await context.newPage(), context, complaints };
    },
    close: () => browser.close(),
  };
}

function complaintsAbout(context: BrowserContext, servers: readonly string[]): string[] {
  const complaints: string[] = [];
  const origins = new Set(servers.map((url) => new URL(url).origin));
  context.on('weberror', (error) => complaints.push(String(error.error())));
  context.on('console', (message) => {
    // Refused requests are expected where a test cuts the network.
    if (message.type() === 'error' && !/Failed to load resource/.test(message.text())) complaints.push(message.text());
  });
  context.on('request', (request) => {
    if (!origins.has(new URL(request.url()).origin)) complaints.push(`a request to ${request.url()}`);
  });
  return complaints;
}

/** For people: nothing is asserted of them. In the deep tier, and with SWITCHYARD_SCREENSHOTS=1. */
export async function keepScreenshot(page: Page, name: string): Promise<void> {
  if (!keepsScreenshots) return;
  mkdirSync(SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`) });
}

/** The rules of axe-core whose verdict depends on colours: a page in other colours, and the same otherwise, is checked by these alone. */
const RULES_OF_COLOURS = ['color-contrast', 'link-in-text-block'];

/** What axe-core finds wrong: rule and elements. @param coloursAlone the same page was checked in other colours */
export async function axeFindings(page: Page, { coloursAlone = false } = {}): Promise<string[]> {
  // Not as a script of the page, which its policy refuses. One document takes it once.
  if (!(await page.evaluate(() => Reflect.has(globalThis, 'axe')))) await page.evaluate(axeSource);
  return page.evaluate(
    async (rules) => {
      const axe = Reflect.get(globalThis, 'axe');
      const { violations } = await axe.run(rules === null ? {} : { runOnly: { type: 'rule', values: rules } });
      return violations.map(({ id, nodes }: { id: string; nodes: { html: string }[] }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
    },
    coloursAlone ? RULES_OF_COLOURS : null,
  );
}

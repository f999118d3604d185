import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { source as axeSource } from 'axe-core';
import { type BrowserContext, chromium, type Page } from 'playwright-core';
import { inject } from 'vitest';
import { freeFolder } from './free-folder.ts';
import { root } from './run-program.ts';

/** As root Chromium has no sandbox; it asks nothing of other hosts. */
const FLAGS = [
  ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  ...['--disable-dev-shm-usage', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'],
];
/** Artefacts: git ignores them. */
const SCREENSHOTS = join(root, 'tests/screenshots');
/** Of everything that a page is waited for, on a busy machine. */
const PAGE_TIMEOUT_MS = 60_000;

export interface OpenedPage {
  page: Page;
  context: BrowserContext;
  /** What the page did that none may do: errors, violations of its policy, requests to other hosts. */
  complaints: string[];
}

export interface TestBrowser {
  /** A browser of its own as far as cookies and storage go. @param origin of the only host that it may ask */
  open(origin: string, options?: { width?: number; height?: number; isDark?: boolean }): Promise<OpenedPage>;
  close(): Promise<void>;
}

/** The browser of this machine. */
export async function startBrowser(): Promise<TestBrowser> {
  const browser = await chromium.launch({ executablePath: inject('chromiumPath'), args: FLAGS, env: { ...process.env, HOME: await freeFolder('browser') } });
  return {
    async open(origin, { width = 1_280, height = 800, isDark = false } = {}) {
      const context = await browser.newContext({ baseURL: origin, viewport: { width, height }, colorScheme: isDark ? 'dark' : 'light' });
      context.setDefaultTimeout(PAGE_TIMEOUT_MS);
      const page = await context.newPage();
      const complaints: string[] = [];
      page.on('pageerror', (error) => complaints.push(String(error)));
      page.on('console', (message) => {
        // Refused requests are expected where a test cuts the network.
        if (message.type() === 'error' && !/Failed to load resource/.test(message.text())) complaints.push(message.text());
      });
      page.on('request', (request) => {
        if (new URL(request.url()).origin !== new URL(origin).origin) complaints.push(`a request to ${request.url()}`);
      });
      return { page, context, complaints };
    },
    close: () => browser.close(),
  };
}

export async function keepScreenshot(page: Page, name: string): Promise<void> {
  mkdirSync(SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`) });
}

/** What axe-core finds wrong: rule and elements. */
export async function axeFindings(page: Page): Promise<string[]> {
  // Not as a script of the page, which its policy refuses.
  await page.evaluate(axeSource);
  return page.evaluate(async () => {
    const axe = Reflect.get(globalThis, 'axe');
    const { violations } = await axe.run();
    return violations.map(({ id, nodes }: { id: string; nodes: { html: string }[] }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
  });
}

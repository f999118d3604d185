import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { testProgram } from '../../scripts/servers/test-programs.mjs';

/** @typedef {import('../../tests/node_modules/playwright-core/index.d.ts').Page} Page */
/** @typedef {import('../../tests/node_modules/playwright-core/index.d.ts').Browser} Browser */

/** As root Chromium has no sandbox; it asks nothing of other hosts. */
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update'];

/** The browser of the tests, with a home of its own. @returns {Promise<{ browser: Browser, close: () => Promise<void> }>} */
export async function openChromium() {
  const home = mkdtempSync(join(tmpdir(), 'switchyard-bench-browser-'));
  /** @type {typeof import('../../tests/node_modules/playwright-core/index.d.ts')} */
  const { chromium } = createRequire(new URL('../../tests/package.json', import.meta.url))('playwright-core');
  const browser = await chromium.launch({ executablePath: await testProgram('chromium'), args: FLAGS, env: { ...process.env, HOME: home } });
  return {
    browser,
    close: async () => {
      await browser.close();
      rmSync(home, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

import { defineConfig } from "vite";

// Everything becomes a file of its own that is named after its content: the page's
// Content-Security-Policy allows nothing inline. `vite` alone serves the sources and passes
// requests on to a scheduler at SCHEDULER.
export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    target: "es2020",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    emptyOutDir: true,
  },
  server: {
    proxy: { "/api": { target: process.env.SCHEDULER ?? "http://127.0.0.1:8080", ws: true } },
  },
});

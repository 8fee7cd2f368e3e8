<#
.SYNOPSIS
Makes this Windows machine a node of a Coracle cluster: installs coracle.exe as a service, and starts it. Run it again to upgrade or to change settings.

.DESCRIPTION
  .\install.ps1 -Server https://192.168.1.2:6443 -Token K10…

Nothing is downloaded: the executable, containerd and the CNI plugins are taken from where they are named, or have been installed before. What is made is recorded in
C:\etc\coracle\installed.json, and uninstall.ps1 removes exactly that.

Exit code 3010: Windows' Containers feature has been switched on; restart the machine and run the script again.

.PARAMETER Server
https://host:port of the server; several, comma separated, for when one is away. Default: $env:CORACLE_URL, or what an earlier run was told.
.PARAMETER Token
What `coracle token create` has printed on the server. Default: $env:CORACLE_TOKEN. Kept in C:\etc\coracle\config.yaml, which only administrators may read.
.PARAMETER Binary
coracle.exe. Default: beside this script, or dist\windows-x64\coracle.exe of the source tree.
.PARAMETER ContainerdDirectory
Where containerd.exe and containerd-shim-runhcs-v1.exe are (the bin directory of its release), if containerd is not a service of this machine yet.
.PARAMETER CniDirectory
Where win-overlay.exe (win-bridge.exe for --overlay host-gw) and host-local.exe are, if they are not in C:\Program Files\containerd\cni\bin yet.
#>
[CmdletBinding()]
param(
  [string] $Server = $env:CORACLE_URL,
  [string] $Token = $env:CORACLE_TOKEN,
  [string] $NodeName,
  [string[]] $NodeIp = @(),
  [string[]] $NodeLabel = @(),
  [string[]] $NodeTaint = @(),
  [string] $Binary,
  [string] $ContainerdDirectory,
  [string] $CniDirectory,
  [int] $KubeletPort = 10250,
  [switch] $SkipStart,
  [int] $TimeoutSeconds = 180
)
Set-StrictMode -Version Latest
$ErrorActionPreference = 'Stop'

$ServiceName = 'coracle'
$ProgramDirectory = Join-Path $env:ProgramFiles 'Coracle'
$Executable = Join-Path $ProgramDirectory 'coracle.exe'
$ConfigDirectory = 'C:\etc\coracle'
$ConfigFile = Join-Path $ConfigDirectory 'config.yaml'
$RecordFile = Join-Path $ConfigDirectory 'installed.json'
$DataDirectory = 'C:\var\lib\coracle'
$Containerd = Join-Path $env:ProgramFiles 'containerd'
$CniBin = Join-Path $Containerd 'cni\bin'
$BuildMinimum = 17763

function Say([string] $Text) { Write-Host "[coracle] $Text" }

# Runs a program; anything but 0 is an error.
function Invoke-Program([string] $Program, [string[]] $Arguments) {
  $output = & $Program @Arguments 2>&1
  if ($LASTEXITCODE -ne 0) { throw "$Program $($Arguments -join ' '): exit code $LASTEXITCODE`n$output" }
}

function Test-Machine {
  $identity = [Security.Principal.WindowsPrincipal][Security.Principal.WindowsIdentity]::GetCurrent()
  if (-not $identity.IsInRole([Security.Principal.WindowsBuiltInRole]::Administrator)) { throw 'run it as administrator' }
  if (-not [Environment]::Is64BitOperatingSystem) { throw 'no build for this machine: 64 bits (x64) only' }
  $build = [int](Get-ItemProperty 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion').CurrentBuildNumber
  if ($build -lt $BuildMinimum) { throw "this is build $build of Windows; Windows Server 2019 (build $BuildMinimum) or later is needed" }
}

# What an installation has made, for uninstall.ps1.
$Record = @{ firewallRules = @(); containerd = $false; cniPlugins = @(); directories = @() }
if (Test-Path $RecordFile) { (Get-Content $RecordFile -Raw | ConvertFrom-Json).PSObject.Properties | ForEach-Object { $Record[$_.Name] = $_.Value } }
function Save-Record { $Record | ConvertTo-Json | Set-Content -Path $RecordFile -Encoding UTF8 }

# Only the system and administrators may look into it.
function New-PrivateDirectory([string] $Path) {
  if (-not (Test-Path $Path)) {
    New-Item -ItemType Directory -Path $Path -Force | Out-Null
    $Record.directories = @($Record.directories) + $Path
  }
  Invoke-Program icacls.exe @($Path, '/inheritance:r', '/grant:r', '*S-1-5-18:(OI)(CI)F', '*S-1-5-32-544:(OI)(CI)F')
}

function Enable-Containers {
  $feature = Get-WindowsOptionalFeature -Online -FeatureName Containers
  if ($feature.State -eq 'Enabled') { return }
  Say "switching on Windows' Containers feature"
  $result = Enable-WindowsOptionalFeature -Online -FeatureName Containers -All -NoRestart
  if ($result.RestartNeeded) {
    Say 'restart this machine, and run the script again'
    exit 3010
  }
}

function Install-Containerd {
  if (-not (Get-Service containerd -ErrorAction SilentlyContinue)) {
    if (-not $ContainerdDirectory) { throw 'containerd is not a service of this machine: install it, or name its executables with -ContainerdDirectory' }
    Say "installing containerd from $ContainerdDirectory"
    New-Item -ItemType Directory -Path $Containerd -Force | Out-Null
    Copy-Item -Path (Join-Path $ContainerdDirectory '*.exe') -Destination $Containerd -Force
    $program = Join-Path $Containerd 'containerd.exe'
    & $program config default | Set-Content -Path (Join-Path $Containerd 'config.toml') -Encoding ASCII
    Invoke-Program $program @('--register-service')
    Invoke-Program sc.exe @('failure', 'containerd', 'reset=', '86400', 'actions=', 'restart/5000/restart/5000/restart/30000')
    $Record.containerd = $true
    Save-Record
  }
  Start-Service containerd
  New-Item -ItemType Directory -Path $CniBin -Force | Out-Null
  if ($CniDirectory) {
    foreach ($plugin in Get-ChildItem -Path $CniDirectory -Filter '*.exe') {
      Copy-Item -Path $plugin.FullName -Destination $CniBin -Force
      $Record.cniPlugins = @(@($Record.cniPlugins) + (Join-Path $CniBin $plugin.Name) | Select-Object -Unique)
    }
    Save-Record
  }
  foreach ($needed in 'host-local.exe') {
    if (-not (Test-Path (Join-Path $CniBin $needed))) { throw "$CniBin has no $needed`: name the CNI plugins' directory with -CniDirectory" }
  }
  if (-not (Get-ChildItem -Path $CniBin -Filter 'win-*.exe')) { throw "$CniBin has neither win-overlay.exe nor win-bridge.exe: name the CNI plugins' directory with -CniDirectory" }
}

function Find-Binary {
  if ($Binary) { return (Resolve-Path $Binary).Path }
  foreach ($candidate in (Join-Path $PSScriptRoot 'coracle.exe'), (Join-Path $PSScriptRoot '..\..\dist\windows-x64\coracle.exe')) {
    if (Test-Path $candidate) { return (Resolve-Path $candidate).Path }
  }
  throw 'no coracle.exe: name one with -Binary'
}

function Stop-Coracle {
  $service = Get-Service $ServiceName -ErrorAction SilentlyContinue
  if ($service -and $service.Status -ne 'Stopped') {
    Stop-Service $ServiceName
    $service.WaitForStatus('Stopped', [TimeSpan]::FromSeconds(60))
  }
}

function Write-Config {
  # JSON strings are YAML strings
  $settings = [ordered]@{}
  if ($Server) { $settings['server'] = $Server }
  if ($Token) { $settings['token'] = $Token }
  if ($NodeName) { $settings['node-name'] = $NodeName }
  if ($NodeIp.Count) { $settings['node-ip'] = $NodeIp }
  if ($NodeLabel.Count) { $settings['node-label'] = $NodeLabel }
  if ($NodeTaint.Count) { $settings['node-taint'] = $NodeTaint }
  if ($KubeletPort -ne 10250) { $settings['kubelet-port'] = $KubeletPort }
  if ($settings.Count -eq 0 -and (Test-Path $ConfigFile)) { return } # a later run without settings keeps those of before
  if (-not $Server) { throw 'which cluster? -Server https://host:6443 (or CORACLE_URL)' }
  $lines = foreach ($name in $settings.Keys) { "${name}: $(ConvertTo-Json -InputObject $settings[$name] -Compress)" }
  [IO.File]::WriteAllText($ConfigFile, (($lines -join "`n") + "`n"), (New-Object Text.UTF8Encoding $false))
}

function Add-FirewallRule([string] $Name, [string] $Protocol, [int] $Port) {
  if (Get-NetFirewallRule -Name $Name -ErrorAction SilentlyContinue) { return }
  New-NetFirewallRule -Name $Name -DisplayName "Coracle: $Protocol $Port" -Direction Inbound -Action Allow -Protocol $Protocol -LocalPort $Port | Out-Null
  $Record.firewallRules = @($Record.firewallRules) + $Name
}

function Register-Coracle {
  $command = "`"$Executable`" agent --windows-service"
  if (Get-Service $ServiceName -ErrorAction SilentlyContinue) {
    Set-ItemProperty -Path "HKLM:\SYSTEM\CurrentControlSet\Services\$ServiceName" -Name ImagePath -Value $command
  } else {
    New-Service -Name $ServiceName -BinaryPathName $command -DisplayName 'Coracle agent' -Description 'Runs the pods of a Kubernetes cluster on this machine' -StartupType Automatic -DependsOn containerd | Out-Null
  }
  Invoke-Program sc.exe @('failure', $ServiceName, 'reset=', '86400', 'actions=', 'restart/5000/restart/5000/restart/30000')
  Invoke-Program sc.exe @('failureflag', $ServiceName, '1') # an end with an error is a failure too
}

# The kubelet's port answers once the node has joined.
function Wait-Node {
  $end = (Get-Date).AddSeconds($TimeoutSeconds)
  while ((Get-Date) -lt $end) {
    if ((Get-Service $ServiceName).Status -eq 'Stopped') { break }
    $client = New-Object Net.Sockets.TcpClient
    try {
      $client.Connect('127.0.0.1', $KubeletPort)
      Say "the node runs; on the server: kubectl get nodes"
      return
    } catch [Net.Sockets.SocketException] {
      Start-Sleep -Seconds 1
    } finally {
      $client.Dispose()
    }
  }
  $log = Join-Path $DataDirectory 'agent\coracle.log'
  if (Test-Path $log) { Get-Content $log -Tail 20 | Write-Host }
  throw "the node has not come up within $TimeoutSeconds s; the log is $log"
}

Test-Machine
$source = Find-Binary
New-PrivateDirectory $ConfigDirectory
New-PrivateDirectory $DataDirectory
Write-Config
Save-Record
Enable-Containers
Install-Containerd
Stop-Coracle
if (-not (Test-Path $ProgramDirectory)) { New-Item -ItemType Directory -Path $ProgramDirectory | Out-Null }
Copy-Item -Path $source -Destination $Executable -Force
Say "$(& $Executable version | Select-Object -First 1) is installed"
Add-FirewallRule 'coracle-kubelet' 'TCP' $KubeletPort
Add-FirewallRule 'coracle-vxlan' 'UDP' 4789
Save-Record
Register-Coracle
if ($SkipStart) { return }
Start-Service $ServiceName
Wait-Node

<#
.SYNOPSIS
Makes this Windows machine a node of a Coracle cluster: installs coracle.exe as a service, and starts it. Run it again to upgrade or to change settings.

.DESCRIPTION
  .\install.ps1 -Server https://192.168.1.2:6443 -Token K10...

Nothing is downloaded: the executable, containerd and the CNI plugins are taken from where they are named, or have been installed before. What is made is recorded in
C:\etc\coracle\installed.json, and uninstall.ps1 removes exactly that. A setting that is not given is what an earlier run was told, or what somebody has written into
C:\etc\coracle\config.yaml: what stands there stays, but for what is given.

Exit code 3010: Windows' Containers feature has been switched on; restart the machine and run the script again.

.PARAMETER Server
https://host:port of the server; several, comma separated, for when one is away. Default: $env:CORACLE_URL.
.PARAMETER Token
What `coracle token create` has printed on the server. Default: $env:CORACLE_TOKEN. Kept in C:\etc\coracle\config.yaml, which only administrators may read.
.PARAMETER Binary
coracle.exe. Default: beside this script, or dist\windows-x64\coracle.exe of the source tree.
.PARAMETER ContainerdDirectory
Where containerd.exe and containerd-shim-runhcs-v1.exe are (the bin directory of its release), if containerd is not a service of this machine yet.
.PARAMETER CniDirectory
Where win-overlay.exe (win-bridge.exe for --overlay host-gw) and host-local.exe are, if they are not in C:\Program Files\containerd\cni\bin yet.
.PARAMETER KubeletPort
Port of the node's own API. Default: 10250.
.PARAMETER SkipStart
Installs everything, and leaves the service stopped.
#>
#Requires -Version 5.1
#Requires -RunAsAdministrator
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
  [ValidateRange(0, 65535)] [int] $KubeletPort = 0,
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
$CniConf = Join-Path $Containerd 'cni\conf'
$BuildMinimum = 17763
$RestartWhenFailed = @('reset=', '86400', 'actions=', 'restart/5000/restart/5000/restart/30000')

function Say([string] $Text) { Write-Host "[coracle] $Text" }

# Runs a program and returns what it says; anything but 0 is an error. Words on stderr are none: in Windows PowerShell each is an error record, at which 'Stop' would stop.
function Invoke-Program([string] $Program, [string[]] $Arguments) {
  $ErrorActionPreference = 'Continue'
  $output = & $Program @Arguments 2>&1 | ForEach-Object { "$_" }
  if ($LASTEXITCODE -ne 0) { throw "$Program $($Arguments -join ' '): exit code $LASTEXITCODE`n$($output -join "`n")" }
  $output
}

function Test-Machine {
  if (-not [Environment]::Is64BitOperatingSystem -or $env:PROCESSOR_ARCHITECTURE -eq 'ARM64') { throw 'no build for this machine: 64 bits (x64) only' }
  if (-not [Environment]::Is64BitProcess) { throw 'this is the PowerShell for 32 bits: run the one in C:\Windows\System32' }
  $build = [int](Get-ItemProperty 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion').CurrentBuildNumber
  if ($build -lt $BuildMinimum) { throw "this is build $build of Windows; Windows Server 2019 (build $BuildMinimum) or later is needed" }
}

# What an installation has made, for uninstall.ps1.
$Record = @{ firewallRules = @(); containerd = $false; cniPlugins = @(); directories = @() }
if (Test-Path $RecordFile) { (Get-Content $RecordFile -Raw | ConvertFrom-Json).PSObject.Properties | ForEach-Object { $Record[$_.Name] = $_.Value } }
function Save-Record { $Record | ConvertTo-Json | Set-Content -Path $RecordFile -Encoding UTF8 }
function Add-ToRecord([string] $List, [string] $Entry) {
  if (@($Record[$List]) -contains $Entry) { return }
  $Record[$List] = @($Record[$List]) + $Entry
  if (Test-Path $ConfigDirectory) { Save-Record }
}

# With the directories above it that are missing, each recorded.
function New-Directory([string] $Path) {
  if (Test-Path $Path) { return }
  New-Directory (Split-Path $Path -Parent)
  New-Item -ItemType Directory -Path $Path | Out-Null
  Add-ToRecord 'directories' $Path
}

# Only the system and administrators may look into it.
function New-PrivateDirectory([string] $Path) {
  New-Directory $Path
  Invoke-Program icacls.exe @($Path, '/inheritance:r', '/grant:r', '*S-1-5-18:(OI)(CI)F', '*S-1-5-32-544:(OI)(CI)F') | Out-Null
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
    if (-not (Test-Path (Join-Path $ContainerdDirectory 'containerd.exe'))) { throw "$ContainerdDirectory has no containerd.exe" }
    Say "installing containerd from $ContainerdDirectory"
    New-Directory $Containerd
    $Record.containerd = $true
    Save-Record
    Copy-Item -Path (Join-Path $ContainerdDirectory '*.exe') -Destination $Containerd -Force
    $program = Join-Path $Containerd 'containerd.exe'
    & $program config default | Set-Content -Path (Join-Path $Containerd 'config.toml') -Encoding ASCII
    if ($LASTEXITCODE -ne 0) { throw "$program config default: exit code $LASTEXITCODE" }
    Invoke-Program $program @('--register-service') | Out-Null
    Invoke-Program sc.exe (@('failure', 'containerd') + $RestartWhenFailed) | Out-Null
  }
  Start-Service containerd
}

function Install-CniPlugins {
  New-Directory $CniBin
  New-Directory $CniConf # the agent writes the pod network's configuration there
  if ($CniDirectory) {
    foreach ($plugin in Get-ChildItem -Path $CniDirectory -Filter '*.exe') {
      $target = Join-Path $CniBin $plugin.Name
      if (@($Record.cniPlugins) -notcontains $target -and (Test-Path $target)) { continue } # somebody else's
      Add-ToRecord 'cniPlugins' $target
      Copy-Item -Path $plugin.FullName -Destination $target -Force
    }
  }
  if (-not (Test-Path (Join-Path $CniBin 'host-local.exe'))) { throw "$CniBin has no host-local.exe: name the CNI plugins' directory with -CniDirectory" }
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

# config.yaml in paragraphs, each a key with the lines that belong to it, as a list has that is written one entry a line; what stands before the first key has no name.
function Read-Settings {
  $paragraphs = New-Object System.Collections.ArrayList
  [void] $paragraphs.Add(@{ Name = ''; Lines = @() })
  if (Test-Path $ConfigFile) {
    foreach ($line in @(Get-Content $ConfigFile -Encoding UTF8)) {
      if ($line -cmatch '^["'']?-{0,2}([a-z][a-z-]*)\+?["'']?\s*:(\s|$)') { [void] $paragraphs.Add(@{ Name = $Matches[1]; Lines = @($line) }) }
      else { $paragraphs[$paragraphs.Count - 1].Lines += $line }
    }
  }
  # not the line itself: it may be the token's
  if (@($paragraphs[0].Lines | Where-Object { $_ -notmatch '^\s*(#.*)?$|^---\s*$|^%' }).Count -gt 0) { throw "${ConfigFile}: begins with no setting; write the name of each at the beginning of a line" }
  , $paragraphs
}

# What stands there for a name, on one line and without comments; '' where nothing does, as where a name has no value.
function Get-Setting($Paragraphs, [string] $Name) {
  $value = ''
  foreach ($paragraph in $Paragraphs) {
    if ($paragraph.Name -cne $Name) { continue }
    $text = @($paragraph.Lines | ForEach-Object { $_ -replace '(^|\s)#.*$', '' }) -join ' '
    $value = ($text -replace '^[^:]*:', '').Trim()
  }
  if (@('~', 'null', '""', "''") -ccontains $value) { return '' }
  $value
}

# In the place of what stands there. Comments after it stay: they are of what follows.
function Set-Setting($Paragraphs, [string] $Name, [string] $Json) {
  $line = "${Name}: $Json"
  foreach ($paragraph in @($Paragraphs | Where-Object { $_.Name -ceq $Name })) {
    $lines = @($paragraph.Lines)
    $end = $lines.Count
    while ($end -gt 1 -and $lines[$end - 1] -match '^\s*(#.*)?$') { $end-- }
    $paragraph.Lines = @(@($line | Where-Object { $_ }) + @($lines | Select-Object -Skip $end))
    $line = '' # "name+" may stand beside "name"
  }
  if ($line) { [void] $Paragraphs.Add(@{ Name = $Name; Lines = @($line) }) }
}

# Those of config.yaml, which may be its owner's, with what this run was given. Values are JSON, which is YAML.
function Get-Settings {
  $settings = Read-Settings
  $given = [ordered]@{ 'server' = $Server; 'token' = $Token; 'node-name' = $NodeName; 'node-ip' = $NodeIp; 'node-label' = $NodeLabel; 'node-taint' = $NodeTaint; 'kubelet-port' = $KubeletPort }
  foreach ($name in $given.Keys) { if ($given[$name]) { Set-Setting $settings $name (ConvertTo-Json -InputObject $given[$name] -Compress) } }
  if (-not (Get-Setting $settings 'server')) { throw 'which cluster? -Server https://host:port (or CORACLE_URL)' }
  if (-not (Get-Setting $settings 'token') -and -not (Get-Setting $settings 'token-file')) { throw 'which token? -Token (or CORACLE_TOKEN): coracle token create prints one on the server' }
  foreach ($url in $Server -split ',' -ne '') { if ($url.Trim() -notmatch '^https://[^/\s]+:\d+/?$') { throw "-Server ${url}: must be https://host:port" } }
  , $settings
}

function Write-Config($Settings) {
  $text = (@($Settings | ForEach-Object { $_.Lines }) | ForEach-Object { "$_`n" }) -join ''
  # not Set-Content: Windows PowerShell's UTF8 begins with a byte order mark
  [IO.File]::WriteAllText($ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath($ConfigFile), $text, (New-Object Text.UTF8Encoding $false))
}

# Made anew each time: the port may be another one.
function Set-FirewallRule([string] $Name, [string] $Protocol, [int] $Port) {
  Add-ToRecord 'firewallRules' $Name
  if (Get-NetFirewallRule -Name $Name -ErrorAction SilentlyContinue) { Remove-NetFirewallRule -Name $Name }
  New-NetFirewallRule -Name $Name -DisplayName "Coracle: $Protocol $Port" -Direction Inbound -Action Allow -Protocol $Protocol -LocalPort $Port | Out-Null
}

function Register-Coracle {
  $command = "`"$Executable`" agent --windows-service"
  if (Get-Service $ServiceName -ErrorAction SilentlyContinue) {
    Set-ItemProperty -Path "HKLM:\SYSTEM\CurrentControlSet\Services\$ServiceName" -Name ImagePath -Value $command
  } else {
    New-Service -Name $ServiceName -BinaryPathName $command -DisplayName 'Coracle agent' -Description 'Runs the pods of a Kubernetes cluster on this machine' -StartupType Automatic -DependsOn containerd | Out-Null
  }
  Invoke-Program sc.exe (@('failure', $ServiceName) + $RestartWhenFailed) | Out-Null
  Invoke-Program sc.exe @('failureflag', $ServiceName, '1') | Out-Null # an end with an error is a failure too
}

function Write-LogTail {
  $log = Join-Path $DataDirectory 'agent\coracle.log'
  if (-not (Test-Path $log)) { return 'it has written no log' }
  Get-Content $log -Tail 20 | Write-Host
  "the log is $log"
}

# The kubelet's port answers once the node has joined.
function Wait-Node([int] $Port) {
  $end = (Get-Date).AddSeconds($TimeoutSeconds)
  while ((Get-Date) -lt $end) {
    if ((Get-Service $ServiceName).Status -eq 'Stopped') { break }
    $client = New-Object Net.Sockets.TcpClient
    try {
      $client.Connect('127.0.0.1', $Port)
      Say 'the node runs; on the server: kubectl get nodes'
      return
    } catch [Net.Sockets.SocketException] {
      Start-Sleep -Seconds 1
    } finally {
      $client.Dispose()
    }
  }
  $where = Write-LogTail
  throw "the node has not come up within $TimeoutSeconds s; $where"
}

Test-Machine
$source = Find-Binary
$settings = Get-Settings
$port = if ((Get-Setting $settings 'kubelet-port') -match '^["'']?(\d+)["'']?$') { [int]$Matches[1] } else { 10250 }
New-PrivateDirectory $ConfigDirectory
Save-Record
New-PrivateDirectory $DataDirectory
New-Directory 'C:\var\log' # the agent writes pods' logs there
Write-Config $settings
Enable-Containers
Install-Containerd
Install-CniPlugins
Stop-Coracle
New-Directory $ProgramDirectory
Copy-Item -Path $source -Destination $Executable -Force
Say "$(& $Executable version | Select-Object -First 1) is installed"
Set-FirewallRule 'coracle-kubelet' 'TCP' $port
Set-FirewallRule 'coracle-vxlan' 'UDP' 4789
Register-Coracle
if ($SkipStart) { return }
try {
  Start-Service $ServiceName
} catch {
  throw "$($_.Exception.Message) $(Write-LogTail)"
}
Wait-Node $port
